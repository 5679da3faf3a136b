// JobWorker: runs due jobs, one at a time: builds of memories and sweeps. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "memory/service/core.h"

namespace kvasir::service {

class JobWorker {
 public:
  explicit JobWorker(Core* core) : core_(*core) {}
  ~JobWorker();

  void Start();
  // Cancels the running job, which stays queued, and waits for the thread; see
  // MemoryTier::StopJobs.
  void Stop(int64_t deadline_us);
  bool RunOne();
  // Cancels the running job when it is one of this user.
  void Cancel(const store::UserKey& user);

 private:
  void Loop();
  base::Status Run(const store::UserKey& user, const JobRecord& job);
  void Finish(const store::UserKey& user, const JobRecord& job, const base::Status& status);
  void Retry(const store::UserKey& user, const JobRecord& job);
  void Remove(const store::UserKey& user, const JobRecord& job, bool failed);

  Core& core_;
  std::thread thread_;
  absl::Mutex mutex_;
  store::UserKey running_user_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = true;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> stopping_ = false;
};

// Removes the user's segments that no record names, and counts the bytes of the others. Errors:
// DataLoss, Unavailable, FailedPrecondition reason ERASURE_IN_PROGRESS.
base::Status SweepUser(Core& core, const UserRef& user);

}  // namespace kvasir::service
