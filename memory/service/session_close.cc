// Closing a session: its memory is final, or a durable job builds it.
#include "memory/service/learning.h"
#include "memory/service/memory_build.h"
#include "memory/service/references.h"
#include "memory/service/session_changes.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
base::StatusOr<SessionRecord> SessionsImpl::Close(const UserRef& user, const std::string& name) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, name));
  UserState& state = *open.user;
  absl::MutexLock session_lock(&state.LockOf(open.id));
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(state.key, open.id)));
  if (session.state == SessionRecord::State::kClosed) return session;
  {
    absl::MutexLock lock(&state.mutex);
    if (state.running.contains(open.id)) {
      return base::WithReason(
          base::Aborted("turn {} of the session is running", session.running_turn), "SESSION_BUSY");
    }
  }
  store::Batch batch;
  SessionVoiding voiding(*core_.store, state);
  KVASIR_RETURN_IF_ERROR(voiding.FailRunning(session, "NOT_FINISHED", core_.now_us(), batch));
  KVASIR_ASSIGN_OR_RETURN(const MemoryPlan final, PlanMemory(core_, state, session));
  std::vector<StatePart> kept;
  if (session.memory) {
    if (const auto memory = state.FindMemory(*session.memory)) kept = memory->parts;
    if (state.IsMounted(*session.memory)) {
      KVASIR_ASSIGN_OR_RETURN(const auto rows, ReadCheckpoint(*core_.store, state.key, session.id));
      for (const CheckpointRow& row : rows) {
        if (!Contains(kept, row.part.id)) PutSweep(core_, state, kSweepWaitUs, batch);
        kept.push_back(row.part);
      }
    }
  }
  KVASIR_RETURN_IF_ERROR(voiding.DropCheckpoint(session.id, kept, batch));
  session.state = SessionRecord::State::kClosed;
  session.close_us = session.update_us = core_.now_us();
  batch.Put(SessionKey(state.key, session.id), Encode(session));
  if (session.incognito) {
    KVASIR_RETURN_IF_ERROR(ForgetIncognitoTurns(core_, state.key, session, batch));
  }
  if (final.memory) batch.Put(MemoryKey(state.key, final.memory->id), Encode(*final.memory));
  final.index.Put(state.key, batch);
  const store::RecordKey job_key = JobKey(state.key, session.id);
  final.job ? batch.Put(job_key, Encode(*final.job)) : batch.Delete(job_key);
  KVASIR_RETURN_IF_ERROR(core_.store->Commit(batch));
  if (final.memory) state.SetMemory(*final.memory);
  final.index.Apply(state);
  final.job ? core_.jobs.Set(state.key, *final.job) : core_.jobs.Remove(state.key, session.id);
  {
    absl::MutexLock lock(&state.mutex);
    state.state_bytes -= voiding.freed_bytes();
    state.sessions[session.id] = MakeEntry(session);
  }
  // It has no further turn: its live state goes with its checkpoint.
  if (DeletionListener* listener = core_.listener) {
    listener->OnSessionInvalidated(user, session.name, /*deleted=*/false);
  }
  return session;
}

}  // namespace kvasir::service
