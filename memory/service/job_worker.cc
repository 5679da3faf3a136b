#include "memory/service/job_worker.h"

#include <algorithm>

#include "absl/time/time.h"
#include "memory/service/memories_impl.h"
#include "memory/service/memory_build.h"
#include "memory/service/record_access.h"

namespace kvasir::service {
namespace {

constexpr int64_t kSecond = 1000000;
constexpr int64_t kAttemptsMax = 6;
constexpr int64_t kIdleWaitUs = 30 * kSecond;  // between writes of use counts

// 1 s, 4 s, 16 s, …
int64_t BackoffUs(int64_t attempts) { return kSecond << std::min<int64_t>(2 * attempts, 20); }

// Whether trying again later may help.
bool IsTransient(const base::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

}  // namespace

JobWorker::~JobWorker() {
  Stop(/*deadline_us=*/0);
  if (thread_.joinable()) thread_.join();
  SaveUses(core_);
}

void JobWorker::Start() {
  if (thread_.joinable()) return;
  stopping_ = false;
  core_.jobs.Start();
  absl::MutexLock lock(&mutex_);
  ended_ = false;
  thread_ = std::thread([this] { Loop(); });
}

void JobWorker::Stop(int64_t deadline_us) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    cancelled_ = true;
    core_.jobs.Stop();
    mutex_.AwaitWithTimeout(absl::Condition(&ended_), absl::Microseconds(deadline_us));
    if (!ended_) return;  // the builder has not given up yet; the destructor waits for it
  }
  if (thread_.joinable()) thread_.join();
  stopping_ = false;
  SaveUses(core_);
}

void JobWorker::Loop() {
  while (!stopping_) {
    if (RunOne()) continue;
    SaveUses(core_);
    if (!core_.jobs.WaitForDue(*core_.clock, kIdleWaitUs)) break;
  }
  absl::MutexLock lock(&mutex_);
  ended_ = true;
}

void JobWorker::Cancel(const store::UserKey& user) {
  absl::MutexLock lock(&mutex_);
  if (running_user_ == user) cancelled_ = true;
}

bool JobWorker::RunOne() {
  const auto next = core_.jobs.NextDue(core_.now_us());
  if (!next) return false;
  const auto& [user, job] = *next;
  {
    absl::MutexLock lock(&mutex_);
    running_user_ = user;
    cancelled_ = stopping_.load();
  }
  const base::Status status = Run(user, job);
  {
    absl::MutexLock lock(&mutex_);
    running_user_ = {};
  }
  Finish(user, job, status);
  return true;
}

base::Status JobWorker::Run(const store::UserKey&, const JobRecord& job) {
  if (job.type == JobRecord::Type::kSweep) {
    KVASIR_RETURN_IF_ERROR(SweepUser(core_, job.user));
    return core_.store->SweepOrphans().status();
  }
  {
    KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(job.user));
    absl::MutexLock session_lock(&shared->LockOf(job.id));
    KVASIR_ASSIGN_OR_RETURN(const SessionRecord session,
                            Read<SessionRecord>(*core_.store, SessionKey(shared->key, job.id)));
    store::Batch batch;
    if (session.incognito) {
      KVASIR_RETURN_IF_ERROR(ForgetIncognitoTurns(core_, shared->key, session, batch));
    }
    if (!batch.empty()) KVASIR_RETURN_IF_ERROR(core_.store->Commit(batch));
  }
  return BuildMemory(core_, job.user, job.id, kv::BuildUrgency::kBackground, cancelled_).status();
}

void JobWorker::Finish(const store::UserKey& user, const JobRecord& job,
                       const base::Status& status) {
  if (status.code() == absl::StatusCode::kCancelled) {
    // Stopping: it stays as it is. Cancelled by an erasure: its row goes with the user's.
    if (!stopping_) Retry(user, job);
  } else if (!status.ok() && IsTransient(status) && job.attempts + 1 < kAttemptsMax) {
    Retry(user, job);
  } else {
    const bool failed = !status.ok() && status.code() != absl::StatusCode::kNotFound;
    Remove(user, job, failed);
  }
}

void JobWorker::Retry(const store::UserKey& user, const JobRecord& job) {
  const auto shared = core_.users.Shared(job.user);
  if (!shared.ok()) return;
  absl::MutexLock session_lock(&(*shared)->LockOf(job.id));
  const auto queued = core_.jobs.Get(user, job.id);
  if (!queued || queued->due_us != job.due_us) return;  // deleted, or queued anew
  JobRecord later = job;
  later.due_us = core_.now_us() + BackoffUs(job.attempts);
  ++later.attempts;
  store::Batch batch;
  batch.Put(JobKey(user, job.id), Encode(later));
  // When the row cannot be written the queue in RAM still waits; a restart begins anew.
  core_.store->Commit(batch).IgnoreError();
  core_.jobs.Set(user, later);
}

// Takes the job off the queue. A memory whose state could not be built for good is kCorrupt.
void JobWorker::Remove(const store::UserKey& user, const JobRecord& job, bool failed) {
  if (failed) {
    absl::MutexLock lock(&core_.counters.mutex);
    ++core_.counters.jobs_failed;
  }
  const auto shared = core_.users.Shared(job.user);
  if (!shared.ok()) {
    core_.jobs.Remove(user, job.id);
    return;
  }
  UserState& state = **shared;
  absl::MutexLock session_lock(&state.LockOf(job.id));
  const auto queued = core_.jobs.Get(user, job.id);
  if (!queued || queued->due_us != job.due_us) return;
  store::Batch batch;
  batch.Delete(JobKey(user, job.id));
  std::optional<MemoryRecord> memory;
  if (failed && job.type == JobRecord::Type::kBuildMemory) {
    absl::MutexLock lock(&state.mutex);
    const auto session = state.sessions.find(job.id);
    if (session != state.sessions.end() && session->second.memory) {
      const auto found = state.memories.find(*session->second.memory);
      if (found != state.memories.end()) {
        if (found->second.state == MemoryRecord::State::kRebuilding) {
          memory = found->second;
          memory->state = MemoryRecord::State::kCorrupt;
        } else {
          state.rebuilds_failed.insert(found->first);  // keeps the state it has
        }
      }
    }
  }
  if (memory) batch.Put(MemoryKey(user, memory->id), Encode(*memory));
  core_.store->Commit(batch).IgnoreError();  // a row that stays is run again after a restart
  if (memory) state.SetMemory(*memory);
  core_.jobs.Remove(user, job.id);
}

}  // namespace kvasir::service
