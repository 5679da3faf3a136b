// Checkpoints: saving what a session's tail gained, and loading it back.
#include <limits>

#include "memory/service/checkpoint_save.h"
#include "memory/service/segment_read.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
namespace {

// What the caller must hand over: exact states of the served model without a gap.
base::Status CheckParts(const kv::ModelId& model,
                        const std::vector<std::shared_ptr<const kv::KvSegment>>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const kv::SegmentInfo& info = parts[i]->info();
    if (!parts[i]->exact()) return base::InvalidArgument("part {} is not exact", i);
    if (info.model_id != model) return base::InvalidArgument("part {} is of another model", i);
    if (i == 0) continue;
    const kv::SegmentInfo& before = parts[i - 1]->info();
    const int64_t end = before.first_position + parts[i - 1]->logical_tokens();
    if (info.first_position != end || info.parent_id != before.context_id) {
      return base::InvalidArgument(
          "part {} begins at {} and does not continue the one before at {}", i, info.first_position,
          end);
    }
  }
  return base::OkStatus();
}

}  // namespace

base::Status SessionsImpl::SaveState(const UserRef& user, const std::string& name, int64_t turn,
                                     const std::vector<std::shared_ptr<const kv::KvSegment>>& parts,
                                     bool replaces_last) {
  if (parts.empty()) return base::InvalidArgument("no parts to save");
  KVASIR_RETURN_IF_ERROR(CheckParts(core_.builder->model_id(), parts));
  // Sealed before any lock is taken.
  KVASIR_ASSIGN_OR_RETURN(const SealedParts sealed, Seal(core_, core_.users.KeyOf(user), parts));
  const auto open = FindSession(core_, user, name);
  if (!open.ok()) {
    if (open.status().code() == absl::StatusCode::kUnavailable) return open.status();
    return base::Aborted("the session is gone: {}", base::ToStd(open.status().message()));
  }
  UserState& state = *open->user;
  absl::MutexLock session_lock(&state.LockOf(open->id));
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(state.key, open->id)));
  if (session.incognito || session.state == SessionRecord::State::kClosed) return base::OkStatus();
  return CheckpointSave(core_, state, std::move(session)).Run(turn, sealed, replaces_last);
}

base::StatusOr<std::vector<std::shared_ptr<const kv::KvSegment>>> SessionsImpl::LoadState(
    const UserRef& user, const std::string& name) {
  std::vector<CheckpointRow> rows;
  store::UserKey key;
  store::RecordId id;
  int64_t position = 0, void_turn = 0;
  {
    KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, name));
    key = open.user->key;
    id = open.id;
    absl::MutexLock session_lock(&open.user->LockOf(id));
    KVASIR_ASSIGN_OR_RETURN(const SessionRecord session,
                            Read<SessionRecord>(*core_.store, SessionKey(key, id)));
    KVASIR_ASSIGN_OR_RETURN(rows, ReadCheckpoint(*core_.store, key, id));
    position = session.offset;
    void_turn = session.void_turn;
  }
  // No lock is held while the states are read.
  std::vector<std::shared_ptr<const kv::KvSegment>> parts;
  for (const CheckpointRow& row : rows) {
    if (row.part.first_position != position) break;
    auto part = ReadPart(core_, key, row.part, std::numeric_limits<int64_t>::max());
    if (part.status().code() == absl::StatusCode::kUnavailable) return part.status();
    if (part.ok() && !parts.empty() &&
        (*part)->info().parent_id != parts.back()->info().context_id) {
      part = base::WithReason(base::DataLoss("parts do not chain"), "STATE_CORRUPT");
    }
    if (!part.ok()) {
      core_.counters.Miss(base::Reason(part.status()));
      break;
    }
    position += row.part.tokens;
    parts.push_back(*std::move(part));
  }
  // Deleted while they were read?
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, name));
  if (open.id != id) return SessionNotFound();
  KVASIR_ASSIGN_OR_RETURN(const SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(key, id)));
  if (session.void_turn != void_turn) parts.clear();
  return parts;
}

}  // namespace kvasir::service
