#include "memory/service/users.h"

namespace kvasir::service {

base::Status ErasureInProgress() {
  return base::WithReason(base::FailedPrecondition("the user is being erased"),
                          "ERASURE_IN_PROGRESS");
}

store::UserKey Users::KeyOf(const UserRef& user) const {
  return store::MakeUserKey(store_->key_ring().index_key(), user.tenant, user.user);
}

std::shared_ptr<UserState> Users::Find(const UserRef& user) {
  const store::UserKey key = KeyOf(user);
  absl::MutexLock lock(&mutex_);
  auto found = users_.find(key);
  if (found == users_.end()) {
    recent_.push_front(key);
    found =
        users_.emplace(key, Slot{std::make_shared<UserState>(user, key, totals_), recent_.begin()})
            .first;
  }
  recent_.splice(recent_.begin(), recent_, found->second.place);
  const std::shared_ptr<UserState> state = found->second.state;
  EvictIdle();
  return state;
}

void Users::EvictIdle() {
  for (auto it = recent_.end(); std::ssize(users_) > users_max_ && it != recent_.begin();) {
    --it;
    const auto slot = users_.find(*it);
    UserState& state = *slot->second.state;
    // In use, or holds what the store does not know yet.
    if (slot->second.state.use_count() > 1 || state.erasing) continue;
    {
      absl::MutexLock lock(&state.mutex);
      if (!state.running.empty() || !state.unsaved_uses.empty()) continue;
    }
    users_.erase(slot);
    it = recent_.erase(it);
  }
}

void Users::Forget(const store::UserKey& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(key);
  if (found == users_.end()) return;
  recent_.erase(found->second.place);
  users_.erase(found);
}

std::vector<std::shared_ptr<UserState>> Users::InRam() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<UserState>> states;
  for (const auto& [key, slot] : users_) states.push_back(slot.state);
  return states;
}

base::StatusOr<SharedUser> Users::Shared(const UserRef& user) {
  while (true) {
    SharedUser shared{Find(user), nullptr};
    if (shared->erasing) return ErasureInProgress();
    shared.gate = std::make_unique<absl::ReaderMutexLock>(&shared->gate);
    if (shared->erasing) return ErasureInProgress();
    if (shared->erased) continue;  // Find gives the new state
    if (shared->loaded) return shared;
    shared.gate.reset();
    KVASIR_RETURN_IF_ERROR(Exclusive(user).status());
  }
}

base::StatusOr<ExclusiveUser> Users::Exclusive(const UserRef& user) {
  while (true) {
    ExclusiveUser exclusive{Find(user), nullptr};
    if (exclusive->erasing) return ErasureInProgress();
    exclusive.gate = std::make_unique<absl::MutexLock>(&exclusive->gate);
    if (exclusive->erasing) return ErasureInProgress();
    if (exclusive->erased) continue;
    if (!exclusive->loaded) {
      KVASIR_RETURN_IF_ERROR(Load(*exclusive));
      exclusive->loaded = true;
    }
    return exclusive;
  }
}

}  // namespace kvasir::service
