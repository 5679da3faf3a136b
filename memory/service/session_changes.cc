#include "memory/service/session_changes.h"

namespace kvasir::service {

void FailTurn(std::string_view finish_reason, int64_t now_us, TurnRecord& turn) {
  turn.state = TurnRecord::State::kFailed;
  turn.finish_reason = finish_reason;
  turn.reply_text.clear();
  turn.reply_ids.clear();
  turn.reply_logprobs.clear();
  turn.finish_us = now_us;
}

TurnRecord WithoutContent(const TurnRecord& turn) {
  TurnRecord bare;
  bare.session = turn.session;
  bare.number = turn.number;
  bare.state = TurnRecord::State::kDeleted;
  bare.mode = turn.mode;
  bare.create_us = turn.create_us;
  bare.finish_us = turn.finish_us;
  return bare;
}

void SessionVoiding::Drop(const StatePart& part, store::Batch& batch) {
  if (!dropped_.insert(part.id).second) return;
  batch.DropSegment(user_.key, part.id);
  freed_bytes_ += part.bytes;
}

base::Status SessionVoiding::DropCheckpoint(const store::RecordId& session,
                                            const std::vector<StatePart>& kept,
                                            store::Batch& batch) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<CheckpointRow> rows,
                          ReadCheckpoint(store_, user_.key, session));
  for (size_t i = 0; i < rows.size(); ++i) {
    batch.Delete(CheckpointKey(user_.key, session, i));
    if (!Contains(kept, rows[i].part.id)) Drop(rows[i].part, batch);
  }
  return base::OkStatus();
}

base::Status SessionVoiding::Void(SessionRecord& session, store::Batch& batch) {
  std::vector<StatePart> kept;
  if (session.memory) {
    if (const auto memory = user_.FindMemory(*session.memory)) kept = memory->parts;
  }
  KVASIR_RETURN_IF_ERROR(DropCheckpoint(session.id, kept, batch));
  session.tainted = true;
  session.void_turn = session.next_turn - 1;
  batch.Put(SessionKey(user_.key, session.id), Encode(session));
  return base::OkStatus();
}

base::Status SessionVoiding::FailRunning(SessionRecord& session, std::string_view finish_reason,
                                         int64_t now_us, store::Batch& batch) {
  if (session.running_turn == 0) return base::OkStatus();
  const store::RecordKey key = TurnKey(user_.key, session.id, session.running_turn);
  KVASIR_ASSIGN_OR_RETURN(TurnRecord turn, Read<TurnRecord>(store_, key));
  if (turn.state == TurnRecord::State::kRunning) {
    FailTurn(finish_reason, now_us, turn);
    batch.Put(key, Encode(turn));
  }
  session.running_turn = 0;
  return base::OkStatus();
}

base::Status SessionVoiding::ForgetMounts(const std::set<store::RecordId>& memories,
                                          SessionRecord& session, int64_t now_us,
                                          store::Batch& batch) {
  for (MountEntry& mount : session.mounts) {
    if (!memories.contains(mount.memory)) continue;
    mount.deleted = true;
    for (const StatePart& part : mount.parts) Drop(part, batch);
    mount.parts.clear();
  }
  KVASIR_RETURN_IF_ERROR(FailRunning(session, "MEMORY_DELETED", now_us, batch));
  return Void(session, batch);
}

base::Status SessionVoiding::ForgetLostMounts(SessionRecord& session, int64_t now_us,
                                              store::Batch& batch) {
  std::set<store::RecordId> lost;
  for (const MountEntry& mount : session.mounts) {
    if (!mount.deleted && !user_.FindMemory(mount.memory)) lost.insert(mount.memory);
  }
  return ForgetMounts(lost, session, now_us, batch);
}

}  // namespace kvasir::service
