// Totals: how many users, sessions and memories the store holds, without asking it. Counted once at
// the start (a walk over their keys), then moved by what each loaded user gained or lost.
//
// Threads: all methods may be called concurrently. Internal.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/status.h"
#include "memory/store/store.h"

namespace kvasir::service {

// What one user adds to the totals.
struct UserCounts {
  int64_t users = 0;  // 0 or 1
  int64_t sessions = 0;
  int64_t memories = 0;
};

class Totals {
 public:
  // Counts what the store holds; before anything is served. Complexity: one seek per user and kind,
  // and one step per session and memory. Errors: DataLoss, Unavailable.
  base::Status Count(const store::Store& store);
  // A user that added `before` adds `now`.
  void Move(const UserCounts& before, const UserCounts& now);
  // Each figure by itself is exact; the three are not taken at one moment.
  UserCounts Get() const;

 private:
  std::atomic<int64_t> users_ = 0, sessions_ = 0, memories_ = 0;
};

}  // namespace kvasir::service
