// SingleFlight: loads of states, each state once at a time, a bounded number at once. Who comes
// while a state is being loaded waits for that load. The first caller does the work on its own
// thread; when its deadline passes, one that waits with a later one takes over. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/kv/segment.h"
#include "memory/service/state_cache.h"

namespace kvasir::service {

class SingleFlight {
 public:
  using Result = base::StatusOr<std::shared_ptr<const kv::KvSegment>>;

  SingleFlight(const base::Clock* clock, int64_t at_once_max)
      : clock_(clock), at_once_max_(at_once_max) {}

  // Runs `load`, or waits for the one that runs for the same key. `load` itself observes
  // `deadline_us` (monotonic). Errors: of `load`; DeadlineExceeded reason LOAD_TIMEOUT.
  Result Run(const StateCache::Key& key, int64_t deadline_us, const std::function<Result()>& load)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Flight {
    bool done = false;
    Result result = base::Unavailable("not loaded");
  };
  // Waits for a change until the deadline. False: it passed.
  bool Wait(int64_t deadline_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const base::Clock* const clock_;
  const int64_t at_once_max_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<StateCache::Key, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mutex_);
};

base::Status LoadTimeout();

}  // namespace kvasir::service
