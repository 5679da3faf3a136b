#include "memory/service/rebuild.h"

#include <algorithm>

#include "memory/service/learning.h"

namespace kvasir::service {
namespace {

bool NeedsRebuild(const Core& core, UserState& user, const MemoryRecord& memory) {
  using State = MemoryRecord::State;
  const bool has_state = memory.state == State::kExact || memory.state == State::kStale;
  if (!has_state || memory.parts.empty() || IsCurrent(core, memory)) return false;
  if (core.jobs.Get(user.key, memory.session)) return false;
  absl::MutexLock lock(&user.mutex);
  const auto session = user.sessions.find(memory.session);
  if (session == user.sessions.end() || user.rebuilds_failed.contains(memory.id)) return false;
  return session->second.closed || memory.model_id_hex != core.builder->model_id().digest.Hex();
}

// How many more may wait.
int64_t Room(const Core& core, const UserState& user) {
  const std::vector<JobRecord> waiting = core.jobs.OfUser(user.key);
  const int64_t builds =
      std::ranges::count(waiting, JobRecord::Type::kBuildMemory, &JobRecord::type);
  return std::min(kRebuildsQueuedMax - builds, core.options.jobs_max / 2 - core.jobs.size());
}

}  // namespace

base::Status QueueRebuilds(Core& core, UserState& user, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> wanted;
  for (const Candidate& candidate : candidates) {
    if (NeedsRebuild(core, user, candidate.memory)) wanted.push_back(&candidate);
  }
  if (wanted.empty()) return base::OkStatus();
  std::ranges::stable_sort(wanted, std::greater(), &Candidate::lexical_score);
  const int64_t room = Room(core, user);
  if (room <= 0) return base::OkStatus();
  if (std::ssize(wanted) > room) wanted.resize(static_cast<size_t>(room));
  store::Batch batch;
  std::vector<JobRecord> jobs;
  for (const Candidate* candidate : wanted) {
    jobs.push_back({.id = candidate->memory.session,
                    .type = JobRecord::Type::kBuildMemory,
                    .user = user.ref,
                    .due_us = core.now_us(),
                    .create_us = core.now_us()});
    batch.Put(JobKey(user.key, jobs.back().id), Encode(jobs.back()));
  }
  KVASIR_RETURN_IF_ERROR(core.store->Commit(batch));
  for (const JobRecord& job : jobs) core.jobs.Set(user.key, job);
  return base::OkStatus();
}

}  // namespace kvasir::service
