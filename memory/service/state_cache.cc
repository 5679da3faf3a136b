#include "memory/service/state_cache.h"

#include <algorithm>
#include <utility>

namespace kvasir::service {

std::shared_ptr<const kv::KvSegment> StateCache::Get(const Key& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->state;
}

void StateCache::Put(const Key& key, const store::RecordId& memory,
                     std::shared_ptr<const kv::KvSegment> state) {
  const size_t bytes = state->bytes();
  if (bytes > bytes_max_) return;
  absl::MutexLock lock(&mutex_);
  if (index_.contains(key)) return;
  entries_.push_front({key, memory, std::move(state)});
  index_[key] = entries_.begin();
  user_bytes_[key.user] += bytes;
  bytes_ += bytes;
  MakeRoom(key.user);
}

void StateCache::Remove(Entries::iterator entry) {
  const size_t bytes = entry->state->bytes();
  bytes_ -= bytes;
  size_t& of_user = user_bytes_[entry->key.user];
  of_user -= bytes;
  if (of_user == 0) user_bytes_.erase(entry->key.user);
  index_.erase(entry->key);
  entries_.erase(entry);
}

// The victim is the least recent state of a user over the reserve, or of `user` itself; when there
// is none, the least recent of all.
void StateCache::MakeRoom(const store::UserKey& user) {
  while (bytes_ > bytes_max_) {
    auto victim = std::prev(entries_.end());
    for (auto it = entries_.end(); it != entries_.begin();) {
      --it;
      if (it == entries_.begin()) break;  // what was just put stays
      if (user_bytes_[it->key.user] > reserve_ || it->key.user == user) {
        victim = it;
        break;
      }
    }
    Remove(victim);
  }
}

void StateCache::PurgeMemory(const store::UserKey& user, const store::RecordId& memory) {
  absl::MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto entry = it++;
    if (entry->key.user == user && entry->memory == memory) Remove(entry);
  }
}

void StateCache::PurgeUser(const store::UserKey& user) {
  absl::MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto entry = it++;
    if (entry->key.user == user) Remove(entry);
  }
}

size_t StateCache::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

size_t StateCache::count(const store::UserKey& user) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(entries_, [&](const Entry& entry) { return entry.key.user == user; }));
}

}  // namespace kvasir::service
