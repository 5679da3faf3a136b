// Erasures: removes users whole. Threads: all methods may be called concurrently. Internal.
#pragma once

#include <map>
#include <string>

#include "memory/service/core.h"
#include "memory/service/job_worker.h"

namespace kvasir::service {

class Erasures {
 public:
  Erasures(Core* core, JobWorker* worker) : core_(*core), worker_(*worker) {}

  // As MemoryTier::EraseUser.
  base::StatusOr<ErasureRecord> Erase(const UserRef& user);
  base::StatusOr<ErasureRecord> Get(const std::string& tenant,
                                    const std::string& erasure_hex) const;
  // Finishes what a crash or a failed disk left, before anything is served. Errors: DataLoss,
  // Unavailable.
  base::Status Resume();

 private:
  // The record of an erasure that was begun: the older one when there is one that goes on.
  base::StatusOr<ErasureRecord> Begin(const UserState& user);
  base::Status Write(const ErasureRecord& record);
  void CountUnloaded(UserState& user) const;
  // Everything from the second step on. Leaves the record kDone.
  base::Status Remove(ErasureRecord& record);

  Core& core_;
  JobWorker& worker_;
  absl::Mutex mutex_;
  std::map<store::UserKey, ErasureRecord> unfinished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvasir::service
