#include "memory/service/job_queue.h"

#include <algorithm>

#include "absl/time/time.h"

namespace kvasir::service {

void JobQueue::Set(const store::UserKey& user, const JobRecord& job) {
  absl::MutexLock lock(&mutex_);
  jobs_[{user, job.id}] = job;
  changed_.SignalAll();
}

void JobQueue::Remove(const store::UserKey& user, const store::RecordId& job) {
  absl::MutexLock lock(&mutex_);
  jobs_.erase({user, job});
}

void JobQueue::RemoveUser(const store::UserKey& user) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(jobs_, [&](const auto& entry) { return entry.first.first == user; });
}

std::optional<JobRecord> JobQueue::Get(const store::UserKey& user,
                                       const store::RecordId& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find({user, job});
  if (found == jobs_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::pair<store::UserKey, JobRecord>> JobQueue::NextDue(int64_t now_us) const {
  absl::MutexLock lock(&mutex_);
  const auto next = std::ranges::min_element(
      jobs_, {}, [](const auto& entry) { return std::pair(entry.second.due_us, entry.first); });
  if (next == jobs_.end() || next->second.due_us > now_us) return std::nullopt;
  return std::pair(next->first.first, next->second);
}

std::vector<JobRecord> JobQueue::OfUser(const store::UserKey& user) const {
  absl::MutexLock lock(&mutex_);
  std::vector<JobRecord> jobs;
  for (auto it = jobs_.lower_bound({user, store::RecordId{}}); it != jobs_.end(); ++it) {
    if (it->first.first != user) break;
    jobs.push_back(it->second);
  }
  return jobs;
}

int64_t JobQueue::size() const {
  absl::MutexLock lock(&mutex_);
  return std::ssize(jobs_);
}

bool JobQueue::WaitForDue(const base::Clock& clock, int64_t wait_us) {
  absl::MutexLock lock(&mutex_);
  const int64_t now_us = clock.WallMicros();
  int64_t next_us = now_us + wait_us;
  for (const auto& [key, job] : jobs_) next_us = std::min(next_us, job.due_us);
  if (!stopped_ && next_us > now_us) {
    changed_.WaitWithTimeout(&mutex_, absl::Microseconds(next_us - now_us));
  }
  return !stopped_;
}

void JobQueue::Start() {
  absl::MutexLock lock(&mutex_);
  stopped_ = false;
}

void JobQueue::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

}  // namespace kvasir::service
