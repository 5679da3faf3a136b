#include "memory/service/deletion.h"

#include <algorithm>

#include "memory/service/memories_impl.h"
#include "memory/service/references.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
namespace {

// A batch is committed before it grows past this; the store takes more than twice as much.
constexpr size_t kBatchChanges = 20000;

}  // namespace

void Deletion::RemoveSession(const store::RecordId& session) {
  absl::MutexLock lock(&user_.mutex);
  const SessionEntry& entry = user_.sessions.at(session);
  sessions_[session] = entry.name;
  if (!entry.memory) return;
  const auto memory = user_.memories.find(*entry.memory);
  if (memory != user_.memories.end()) memories_[memory->first] = memory->second;
}

void Deletion::RaiseFence() {
  absl::MutexLock lock(&user_.mutex);
  ++user_.record.epoch;
  for (const auto& [id, memory] : memories_) {
    user_.memories.erase(id);
    user_.index.Remove(id.bytes);
    user_.unsaved_uses.erase(id);
    const auto source = user_.sessions.find(memory.session);
    if (source != user_.sessions.end() && !sessions_.contains(source->first)) {
      voided_[source->first] = source->second.name;
    }
  }
  for (const auto& [id, name] : sessions_) {
    user_.sessions.erase(id);
    user_.session_names.erase(name);
    user_.running.erase(id);
  }
  for (const auto& [id, entry] : user_.sessions) {
    for (const store::RecordId& mount : entry.mounts) {
      if (memories_.contains(mount)) voided_[id] = entry.name;
    }
  }
  for (const auto& [id, name] : voided_) user_.running.erase(id);
}

void Deletion::TellListener() const {
  DeletionListener* listener = core_.listener;
  if (listener == nullptr) return;
  for (const auto& [id, memory] : memories_) listener->OnMemoryDeleted(user_.ref, id);
  for (const auto& [id, name] : sessions_) listener->OnSessionInvalidated(user_.ref, name, true);
  for (const auto& [id, name] : voided_) listener->OnSessionInvalidated(user_.ref, name, false);
}

base::Status Deletion::PutRowsRemoval(store::Kind kind, const store::RecordId& id) {
  return ForEachRecord(*core_.store, user_.key, kind, id, [&](const store::Record& record) {
    batch_.Delete(record.key);
    return base::OkStatus();
  });
}

base::Status Deletion::PutMemoryRemoval(const MemoryRecord& memory) {
  batch_.Delete(MemoryKey(user_.key, memory.id));
  batch_.Put(TombstoneKey(user_.key, memory.id),
             Encode(Tombstone{store::Kind::kMemory, core_.now_us()}));
  KVASIR_RETURN_IF_ERROR(PutRowsRemoval(store::Kind::kPostings, memory.id));
  for (const StatePart& part : memory.parts) voiding_.Drop(part, batch_);
  return sessions_.contains(memory.session) ? base::OkStatus() : PutSourceTurns(memory);
}

// The session stays; the turns that the memory was built from lose their content.
base::Status Deletion::PutSourceTurns(const MemoryRecord& memory) {
  for (const int64_t number : memory.source_turns) {
    const store::RecordKey key = TurnKey(user_.key, memory.session, number);
    const auto turn = Read<TurnRecord>(*core_.store, key);
    if (turn.status().code() == absl::StatusCode::kNotFound) continue;
    KVASIR_RETURN_IF_ERROR(turn.status());
    batch_.Put(key, Encode(WithoutContent(*turn)));
  }
  if (!voided_.contains(memory.session)) return base::OkStatus();
  batch_.Delete(JobKey(user_.key, memory.session));
  jobs_.insert(memory.session);
  return PutVoidedSession(memory.session);
}

// A session that was a memory's source or had it mounted.
base::Status Deletion::PutVoidedSession(const store::RecordId& id) {
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(user_.key, id)));
  std::set<store::RecordId> gone;
  for (const auto& [memory, record] : memories_) gone.insert(memory);
  if (session.memory && gone.contains(*session.memory)) session.memory.reset();
  KVASIR_RETURN_IF_ERROR(voiding_.ForgetMounts(gone, session, core_.now_us(), batch_));
  absl::MutexLock lock(&user_.mutex);
  user_.sessions[id] = MakeEntry(session);
  return base::OkStatus();
}

base::Status Deletion::PutSessionRemoval(const store::RecordId& session) {
  batch_.Delete(SessionKey(user_.key, session));
  batch_.Put(TombstoneKey(user_.key, session),
             Encode(Tombstone{store::Kind::kSession, core_.now_us()}));
  KVASIR_RETURN_IF_ERROR(PutRowsRemoval(store::Kind::kTurn, session));
  KVASIR_RETURN_IF_ERROR(voiding_.DropCheckpoint(session, {}, batch_));
  batch_.Delete(JobKey(user_.key, session));
  jobs_.insert(session);
  return base::OkStatus();
}

base::Status Deletion::Commit() {
  const base::Status status = core_.store->Commit(batch_);
  batch_ = store::Batch();
  return status;
}

base::Status Deletion::CommitAll() {
  {
    absl::MutexLock lock(&user_.mutex);
    batch_.Put(UserRowKey(user_.key), Encode(user_.record));
  }
  for (const auto& [id, name] : sessions_) KVASIR_RETURN_IF_ERROR(PutSessionRemoval(id));
  for (const auto& [id, memory] : memories_) KVASIR_RETURN_IF_ERROR(PutMemoryRemoval(memory));
  // Removes what only a walk over the store finds: segments kept for mounts, orphan chunks.
  PutSweep(core_, user_, /*wait_us=*/0, batch_);
  std::set<store::RecordId> sources;
  for (const auto& [id, memory] : memories_) sources.insert(memory.session);
  for (const auto& [id, name] : voided_) {
    if (sources.contains(id)) continue;  // done with its memory
    if (batch_.size() > kBatchChanges) KVASIR_RETURN_IF_ERROR(Commit());
    KVASIR_RETURN_IF_ERROR(PutVoidedSession(id));
  }
  return Commit();
}

base::Status Deletion::Run() {
  RaiseFence();
  for (const auto& [id, memory] : memories_) core_.cache.PurgeMemory(user_.key, id);
  TellListener();
  if (const base::Status status = CommitAll(); !status.ok()) {
    user_.loaded = false;  // what the store holds decides
    return status;
  }
  for (const store::RecordId& job : jobs_) core_.jobs.Remove(user_.key, job);
  absl::MutexLock lock(&user_.mutex);
  user_.state_bytes = std::max<int64_t>(0, user_.state_bytes - voiding_.freed_bytes());
  user_.Recount();
  return base::OkStatus();
}

base::Status MemoriesImpl::Delete(const UserRef& user, const std::string& memory) {
  KVASIR_ASSIGN_OR_RETURN(const ExclusiveUser exclusive, core_.users.Exclusive(user));
  const std::optional<store::RecordId> id = ParseRecordId(memory);
  const auto record = id ? exclusive->FindMemory(*id) : std::nullopt;
  if (!record) return MemoryNotFound();
  Deletion deletion(core_, *exclusive);
  deletion.RemoveMemory(*record);
  return deletion.Run();
}

base::Status SessionsImpl::Delete(const UserRef& user, const std::string& session) {
  KVASIR_ASSIGN_OR_RETURN(const ExclusiveUser exclusive, core_.users.Exclusive(user));
  const std::optional<store::RecordId> id = exclusive->FindSession(session);
  if (!id) return SessionNotFound();
  Deletion deletion(core_, *exclusive);
  deletion.RemoveSession(*id);
  return deletion.Run();
}

}  // namespace kvasir::service
