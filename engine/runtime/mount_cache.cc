#include "engine/runtime/mount_cache.h"

#include <utility>

namespace kvasir::runtime {

std::shared_ptr<const MountableSegment> MountCache::Find(const base::Digest& key, uint64_t use) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  found->second.last_use = use;
  return found->second.segment;
}

void MountCache::Insert(const base::Digest& key, std::shared_ptr<const MountableSegment> segment,
                        uint64_t use) {
  const std::lock_guard lock(mutex_);
  entries_[key] = {std::move(segment), use};
}

void MountCache::Erase(const base::Digest& key) {
  const std::lock_guard lock(mutex_);
  entries_.erase(key);
}

void MountCache::Clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

// A count of one under the lock stays one: nobody else has it to copy.
MountCache::Entries::const_iterator MountCache::Oldest() const {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.segment.use_count() > 1) continue;
    if (oldest == entries_.end() || it->second.last_use < oldest->second.last_use) oldest = it;
  }
  return oldest;
}

std::optional<uint64_t> MountCache::OldestUnreferenced() const {
  const std::lock_guard lock(mutex_);
  const auto oldest = Oldest();
  if (oldest == entries_.end()) return std::nullopt;
  return oldest->second.last_use;
}

bool MountCache::EvictOldestUnreferenced() {
  const std::lock_guard lock(mutex_);
  const auto oldest = Oldest();
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

size_t MountCache::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [key, entry] : entries_) bytes += entry.segment->resident->bytes();
  return bytes;
}

}  // namespace kvasir::runtime
