// JobQueue: the jobs of the store (kJob rows) in RAM, by the time from which they may run. Callers
// write the row first, then tell the queue. Threads: all methods may be called concurrently.
// Internal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/clock.h"
#include "memory/service/records.h"

namespace kvasir::service {

class JobQueue {
 public:
  void Set(const store::UserKey& user, const JobRecord& job);
  void Remove(const store::UserKey& user, const store::RecordId& job);
  void RemoveUser(const store::UserKey& user);
  std::optional<JobRecord> Get(const store::UserKey& user, const store::RecordId& job) const;
  // All jobs of `user`.
  std::vector<JobRecord> OfUser(const store::UserKey& user) const;
  // The due job that has waited longest; it stays in the queue.
  std::optional<std::pair<store::UserKey, JobRecord>> NextDue(int64_t now_us) const;
  int64_t size() const;

  // Waits until a job may be due, at most `wait_us`, or Wake. False after Stop.
  bool WaitForDue(const base::Clock& clock, int64_t wait_us);
  void Start();
  void Stop();

 private:
  using Key = std::pair<store::UserKey, store::RecordId>;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Key, JobRecord> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvasir::service
