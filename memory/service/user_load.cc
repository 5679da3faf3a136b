// Loading a user: the view of the store, and what a crash left half done.
#include "memory/service/record_access.h"
#include "memory/service/session_changes.h"
#include "memory/service/users.h"

namespace kvasir::service {
namespace {

// Ends the turn that a crash left running. The user's text stays; the session is usable.
base::Status EndRunningTurn(const store::Store& store, const store::UserKey& key, int64_t now_us,
                            SessionRecord& session, store::Batch& batch) {
  auto turn = Read<TurnRecord>(store, TurnKey(key, session.id, session.running_turn));
  if (turn.ok() && turn->state == TurnRecord::State::kRunning) {
    FailTurn("SERVER_STOPPED", now_us, *turn);
    batch.Put(TurnKey(key, session.id, turn->number), Encode(*turn));
  } else if (!turn.ok() && turn.status().code() != absl::StatusCode::kNotFound) {
    return turn.status();
  }
  session.running_turn = 0;
  batch.Put(SessionKey(key, session.id), Encode(session));
  return base::OkStatus();
}

}  // namespace

base::Status Users::LoadSessions(UserState& state) {
  std::vector<SessionRecord> sessions;
  KVASIR_RETURN_IF_ERROR(ForEachRecord(*store_, state.key, store::Kind::kSession, std::nullopt,
                                       [&](const store::Record& record) {
                                         auto session = Decode<SessionRecord>(record.value);
                                         if (session.ok()) sessions.push_back(*std::move(session));
                                         return session.status();
                                       }));
  for (SessionRecord& session : sessions) {
    store::Batch batch;
    bool lost = false;  // mounts a memory whose deletion was cut short
    bool running = false;
    {
      absl::MutexLock lock(&state.mutex);
      for (const MountEntry& mount : session.mounts) {
        lost |= !mount.deleted && !state.memories.contains(mount.memory);
      }
      running = state.running.contains(session.id);
    }
    if (session.running_turn != 0 && !running) {
      KVASIR_RETURN_IF_ERROR(
          EndRunningTurn(*store_, state.key, clock_->WallMicros(), session, batch));
    }
    if (lost) {
      SessionVoiding voiding(*store_, state);
      KVASIR_RETURN_IF_ERROR(voiding.ForgetLostMounts(session, clock_->WallMicros(), batch));
    }
    if (!batch.empty()) KVASIR_RETURN_IF_ERROR(store_->Commit(batch));
    absl::MutexLock lock(&state.mutex);
    state.session_names[session.name] = session.id;
    state.sessions[session.id] = MakeEntry(session);
  }
  return base::OkStatus();
}

base::Status Users::Load(UserState& state) {
  {
    absl::MutexLock lock(&state.mutex);
    state.exists = false;
    state.record = UserRecord{.ref = state.ref};
    state.sessions.clear();
    state.session_names.clear();
    state.memories.clear();
    state.index = index::LexicalIndex();
    state.state_bytes = 0;
  }
  auto user = Read<UserRecord>(*store_, UserRowKey(state.key));
  if (user.status().code() == absl::StatusCode::kNotFound) {
    absl::MutexLock lock(&state.mutex);
    state.Recount();
    return base::OkStatus();
  }
  KVASIR_RETURN_IF_ERROR(user.status());
  KVASIR_RETURN_IF_ERROR(ForEachRecord(*store_, state.key, store::Kind::kMemory, std::nullopt,
                                       [&](const store::Record& record) {
                                         const auto memory = Decode<MemoryRecord>(record.value);
                                         if (!memory.ok()) return memory.status();
                                         absl::MutexLock lock(&state.mutex);
                                         state.memories[memory->id] = *memory;
                                         return base::OkStatus();
                                       }));
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      *store_, state.key, store::Kind::kPostings, std::nullopt, [&](const store::Record& record) {
        auto terms = index::DecodeTermCounts(record.value);
        if (!terms.ok()) return terms.status();
        absl::MutexLock lock(&state.mutex);
        if (state.memories.contains(record.key.id)) {
          state.index.SetTurn(record.key.id.bytes, static_cast<int64_t>(record.key.sequence),
                              *std::move(terms));
        }
        return base::OkStatus();
      }));
  int64_t bytes = 0;
  KVASIR_RETURN_IF_ERROR(ForEachSegment(*store_, state.key, [&](const store::SegmentRow& row) {
    bytes += static_cast<int64_t>(row.bytes);
  }));
  KVASIR_RETURN_IF_ERROR(LoadSessions(state));
  absl::MutexLock lock(&state.mutex);
  state.exists = true;
  state.record = *std::move(user);
  state.state_bytes = bytes;
  state.Recount();
  return base::OkStatus();
}

}  // namespace kvasir::service
