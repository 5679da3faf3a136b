// Users: the users whose state is in RAM; loads it when a user comes. Internal.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "engine/base/clock.h"
#include "memory/service/user_state.h"
#include "memory/store/store.h"

namespace kvasir::service {

// A loaded user with its gate held shared.
struct SharedUser {
  std::shared_ptr<UserState> state;
  std::unique_ptr<absl::ReaderMutexLock> gate;  // goes first
  UserState* operator->() const { return state.get(); }
  UserState& operator*() const { return *state; }
};
// The same, held exclusively.
struct ExclusiveUser {
  std::shared_ptr<UserState> state;
  std::unique_ptr<absl::MutexLock> gate;
  UserState* operator->() const { return state.get(); }
  UserState& operator*() const { return *state; }
};

class Users {
 public:
  // Keeps up to `users_max` users that nobody uses, the most recent ones. The others outlive it.
  Users(store::Store* store, const base::Clock* clock, Totals* totals, int64_t users_max)
      : store_(store), clock_(clock), totals_(totals), users_max_(users_max) {}

  // Errors: FailedPrecondition reason ERASURE_IN_PROGRESS, DataLoss, Unavailable.
  base::StatusOr<SharedUser> Shared(const UserRef& user);
  base::StatusOr<ExclusiveUser> Exclusive(const UserRef& user);
  // The state as it is, loaded or not.
  std::shared_ptr<UserState> Find(const UserRef& user) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the state out: the next Find makes a new one.
  void Forget(const store::UserKey& key) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<UserState>> InRam() const ABSL_LOCKS_EXCLUDED(mutex_);
  store::UserKey KeyOf(const UserRef& user) const;

 private:
  struct Slot {
    std::shared_ptr<UserState> state;
    std::list<store::UserKey>::iterator place;
  };
  void EvictIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the user from the store and mends what a crash left. REQUIRES: gate held exclusively.
  base::Status Load(UserState& state);
  base::Status LoadSessions(UserState& state);

  store::Store* const store_;
  const base::Clock* const clock_;
  Totals* const totals_;
  const int64_t users_max_;
  mutable absl::Mutex mutex_;
  std::map<store::UserKey, Slot> users_ ABSL_GUARDED_BY(mutex_);
  std::list<store::UserKey> recent_ ABSL_GUARDED_BY(mutex_);  // most recent first
};

base::Status ErasureInProgress();

}  // namespace kvasir::service
