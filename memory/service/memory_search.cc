// Memories: finding them by words.
#include <algorithm>

#include "memory/service/learning.h"
#include "memory/service/memories_impl.h"
#include "memory/service/rebuild.h"
#include "memory/service/record_access.h"

namespace kvasir::service {
namespace {

bool SameTurns(const UserState& user, const MemoryRecord& memory) {
  const auto known = user.FindMemory(memory.id);
  return known && known->state == memory.state && known->source_turns == memory.source_turns;
}

// Whether the memory holds the session's last turn and its job runs as soon as it can.
bool IsAnnounced(const Core& core, const UserState& user, const SessionRecord& session,
                 const JobRecord& waiting) {
  if (!session.memory || (waiting.attempts == 0 && waiting.due_us > core.now_us())) return false;
  const auto memory = user.FindMemory(*session.memory);
  return memory && memory->state != MemoryRecord::State::kCorrupt &&
         !memory->source_turns.empty() && memory->source_turns.back() == session.next_turn - 1;
}

// Commits the memory that a session leaves unless it is known already, and lets its job run now.
base::Status Announce(Core& core, UserState& user, const JobRecord& waiting) {
  absl::MutexLock session_lock(&user.LockOf(waiting.id));
  {
    absl::MutexLock lock(&user.mutex);
    if (!user.sessions.contains(waiting.id) || user.running.contains(waiting.id)) {
      return base::OkStatus();
    }
  }
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core.store, SessionKey(user.key, waiting.id)));
  if (IsAnnounced(core, user, session, waiting)) return base::OkStatus();
  const auto plan = PlanMemory(core, user, session);
  if (plan.status().code() == absl::StatusCode::kResourceExhausted) return base::OkStatus();
  KVASIR_RETURN_IF_ERROR(plan.status());
  if (!plan->memory || SameTurns(user, *plan->memory)) return base::OkStatus();
  store::Batch batch;
  batch.Put(SessionKey(user.key, session.id), Encode(session));
  batch.Put(MemoryKey(user.key, plan->memory->id), Encode(*plan->memory));
  plan->index.Put(user.key, batch);
  batch.Put(JobKey(user.key, session.id), Encode(*plan->job));
  KVASIR_RETURN_IF_ERROR(core.store->Commit(batch));
  user.SetMemory(*plan->memory);
  plan->index.Apply(user);
  core.jobs.Set(user.key, *plan->job);
  absl::MutexLock lock(&user.mutex);
  user.sessions[session.id] = MakeEntry(session);
  return base::OkStatus();
}

// What the user's other sessions said and no memory holds yet (their state cannot become one, or
// the server ended before it was stored) becomes a memory to be built: what was said is found by
// the very next session.
base::Status AnnounceWaiting(Core& core, UserState& user,
                             const std::optional<store::RecordId>& own) {
  for (const JobRecord& job : core.jobs.OfUser(user.key)) {
    if (job.type != JobRecord::Type::kBuildMemory || job.id == own) continue;
    KVASIR_RETURN_IF_ERROR(Announce(core, user, job));
  }
  return base::OkStatus();
}

}  // namespace

base::StatusOr<std::vector<Candidate>> MemoriesImpl::Search(const UserRef& user,
                                                            const std::string& query,
                                                            int64_t top_k) {
  if (top_k < 1) return base::InvalidArgument("top_k is {}, at least 1", top_k);
  const index::TermCounts terms = core_.analyzer->Analyze(query);
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  absl::MutexLock lock(&shared->mutex);
  std::vector<Candidate> found;
  for (const index::Hit& hit : shared->index.Query(terms)) {
    if (std::ssize(found) == top_k) break;
    const auto memory = shared->memories.find(store::RecordId{hit.id});
    if (memory == shared->memories.end()) continue;
    found.push_back({.memory = memory->second,
                     .lexical_hit = true,
                     .lexical_score = hit.score,
                     .best_turn = hit.best_turn});
  }
  return found;
}

base::StatusOr<std::vector<Candidate>> MemoriesImpl::Candidates(const UserRef& user,
                                                                const std::string& session,
                                                                const std::string& message) {
  const index::TermCounts terms = core_.analyzer->Analyze(message);
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  const std::optional<store::RecordId> own = shared->FindSession(session);
  KVASIR_RETURN_IF_ERROR(AnnounceWaiting(core_, *shared, own));
  std::vector<Candidate> candidates;
  {
    absl::MutexLock lock(&shared->mutex);
    std::map<index::MemoryId, index::Hit> hits;
    for (const index::Hit& hit : shared->index.Query(terms)) hits[hit.id] = hit;
    for (const auto& [id, memory] : shared->memories) {
      if (own && memory.session == *own) continue;
      Candidate& candidate = candidates.emplace_back();
      candidate.memory = memory;
      const auto hit = hits.find(id.bytes);
      if (hit == hits.end()) continue;
      candidate.lexical_hit = true;
      candidate.lexical_score = hit->second.score;
      candidate.best_turn = hit->second.best_turn;
    }
  }
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.memory.create_us > b.memory.create_us;
  });
  KVASIR_RETURN_IF_ERROR(QueueRebuilds(core_, *shared, candidates));
  return candidates;
}

}  // namespace kvasir::service
