#include "memory/service/memory_build.h"

#include "memory/service/checkpoint_save.h"
#include "memory/service/learning.h"
#include "memory/service/references.h"

namespace kvasir::service {
namespace {

struct BuildSource {
  SessionRecord session;
  std::vector<TurnRecord> turns;
  std::optional<MemoryRecord> memory;
};

// REQUIRES: gate held shared, and the session's lock.
base::StatusOr<BuildSource> ReadSource(Core& core, UserState& user,
                                       const store::RecordId& session) {
  BuildSource source;
  {
    absl::MutexLock lock(&user.mutex);
    if (!user.sessions.contains(session)) return SessionNotFound();
  }
  KVASIR_ASSIGN_OR_RETURN(source.session,
                          Read<SessionRecord>(*core.store, SessionKey(user.key, session)));
  KVASIR_ASSIGN_OR_RETURN(source.turns, LearnableTurns(*core.store, user.key, source.session));
  if (source.session.memory) source.memory = user.FindMemory(*source.session.memory);
  return source;
}

// The ids of the replies are used when they are tokens of the served model, else their text.
kv::BuilderSession ToBuild(const Core& core, const UserRef& user, const BuildSource& source,
                           kv::BuildUrgency urgency) {
  const bool own_ids = CheckSessionModel(source.session, core.builder->model_id()).ok();
  kv::BuilderSession session{.date = source.session.date, .turns = {}, .urgency = urgency};
  if (urgency == kv::BuildUrgency::kChat) session.fairness_key = FairnessKey(user);
  for (const TurnRecord& turn : source.turns) {
    session.turns.push_back(
        {.turn = turn.number,
         .user_text = turn.user_text,
         .assistant_text = turn.reply_text,
         .assistant_tokens = own_ids ? turn.reply_ids : std::vector<int32_t>()});
  }
  return session;
}

// Commits the built state. REQUIRES: gate held shared.
base::StatusOr<MemoryRecord> StoreBuilt(Core& core, UserState& user, const BuildSource& before,
                                        const SealedParts& sealed) {
  absl::MutexLock session_lock(&user.LockOf(before.session.id));
  KVASIR_ASSIGN_OR_RETURN(BuildSource now, ReadSource(core, user, before.session.id));
  for (const TurnRecord& turn : before.turns) {
    KVASIR_ASSIGN_OR_RETURN(
        const TurnRecord stored,
        Read<TurnRecord>(*core.store, TurnKey(user.key, turn.session, turn.number)));
    if (!Learnable(now.session, stored)) {
      return base::Aborted("turn {} was deleted while the memory was built", turn.number);
    }
  }
  // A save of the session's own state may have come first, with as many turns or more.
  if (now.memory && now.memory->source_turns.size() >= before.turns.size() &&
      IsComplete(core, *now.memory, now.memory->source_turns)) {
    return *now.memory;
  }
  SessionRecord& session = now.session;
  KVASIR_ASSIGN_OR_RETURN(MemoryRecord memory,
                          MemoryOf(core, user, session, before.turns.front().user_text));
  store::Batch batch;
  SessionVoiding voiding(*core.store, user);
  if (!user.IsMounted(memory.id)) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<CheckpointRow> rows,
                            ReadCheckpoint(*core.store, user.key, session.id));
    std::vector<StatePart> checkpoint;
    for (const CheckpointRow& row : rows) checkpoint.push_back(row.part);
    for (const StatePart& part : memory.parts) {
      if (!Contains(checkpoint, part.id)) voiding.Drop(part, batch);
    }
  } else if (!memory.parts.empty()) {
    PutSweep(core, user, kSweepWaitUs, batch);
  }
  IndexUpdate index{.memory = memory.id, .turns = {}};
  index.AddDate(core, session);
  for (const TurnRecord& turn : before.turns) index.AddTurn(core, turn);
  memory.state = MemoryRecord::State::kExact;
  memory.source_turns = Numbers(before.turns);
  memory.parts = sealed.parts;
  memory.logical_tokens = 0;
  for (const StatePart& part : sealed.parts) memory.logical_tokens += part.tokens;
  memory.model_id_hex = core.builder->model_id().digest.Hex();
  memory.build_id = core.builder->build_id().text;
  memory.update_us = core.now_us();
  session.memory = memory.id;
  for (const auto& segment : sealed.segments) batch.AddSegment(user.key, segment);
  batch.Put(MemoryKey(user.key, memory.id), Encode(memory));
  batch.Put(SessionKey(user.key, session.id), Encode(session));
  index.Put(user.key, batch);
  {
    absl::MutexLock lock(&user.mutex);
    const int64_t wanted = user.state_bytes + sealed.bytes() - voiding.freed_bytes();
    if (wanted > core.options.state_bytes_per_user_max) {
      return MemoryQuotaExceeded("bytes of states", wanted, core.options.state_bytes_per_user_max);
    }
  }
  KVASIR_RETURN_IF_ERROR(core.store->Commit(batch));
  user.SetMemory(memory);
  index.Apply(user);
  absl::MutexLock lock(&user.mutex);
  user.state_bytes += sealed.bytes() - voiding.freed_bytes();
  user.sessions[session.id] = MakeEntry(session);
  return memory;
}

}  // namespace

base::StatusOr<MemoryRecord> BuildMemory(Core& core, const UserRef& user,
                                         const store::RecordId& session, kv::BuildUrgency urgency,
                                         const std::atomic<bool>& cancelled) {
  BuildSource source;
  {
    KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core.users.Shared(user));
    absl::MutexLock session_lock(&shared->LockOf(session));
    KVASIR_ASSIGN_OR_RETURN(source, ReadSource(core, *shared, session));
  }
  if (source.turns.empty()) return base::NotFound("the session holds nothing to learn from");
  if (source.memory && IsComplete(core, *source.memory, Numbers(source.turns))) {
    return *source.memory;
  }
  KVASIR_ASSIGN_OR_RETURN(const std::shared_ptr<const kv::KvSegment> state,
                          core.builder->Build(ToBuild(core, user, source, urgency), cancelled));
  if (state->info().model_id != core.builder->model_id() ||
      state->info().first_position != core.builder->base_tokens()) {
    return base::Internal("a built state begins at {}, the base has {} tokens",
                          state->info().first_position, core.builder->base_tokens());
  }
  KVASIR_ASSIGN_OR_RETURN(const SealedParts sealed, Seal(core, core.users.KeyOf(user), {state}));
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core.users.Shared(user));
  return StoreBuilt(core, *shared, source, sealed);
}

base::Status ForgetIncognitoTurns(const Core& core, const store::UserKey& user,
                                  const SessionRecord& session, store::Batch& batch) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<TurnRecord> turns,
                          ReadTurns(*core.store, user, session.id, 1, session.next_turn - 1));
  for (const TurnRecord& turn : turns) {
    if (turn.mode != MemoryMode::kIncognito && session.mode != MemoryMode::kIncognito) continue;
    if (turn.state == TurnRecord::State::kDone || turn.state == TurnRecord::State::kFailed) {
      batch.Put(TurnKey(user, session.id, turn.number), Encode(WithoutContent(turn)));
    }
  }
  return base::OkStatus();
}

}  // namespace kvasir::service
