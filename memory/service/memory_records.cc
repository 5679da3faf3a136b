// Memories: reading and listing them, their text, their use counts.
#include "memory/service/memories_impl.h"
#include "memory/service/memory_build.h"
#include "memory/service/record_access.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {

base::StatusOr<MemoryRecord> MemoriesImpl::Get(const UserRef& user, const std::string& memory) {
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  const std::optional<store::RecordId> id = ParseRecordId(memory);
  auto record = id ? shared->FindMemory(*id) : std::nullopt;
  if (!record) return MemoryNotFound();
  return *std::move(record);
}

base::StatusOr<Listed<MemoryRecord>> MemoriesImpl::List(const UserRef& user, const ListPage& page) {
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  absl::MutexLock lock(&shared->mutex);
  std::vector<ListPosition> positions;
  for (const auto& [id, memory] : shared->memories) positions.push_back({memory.create_us, id});
  KVASIR_RETURN_IF_ERROR(CutPage(page, positions));
  Listed<MemoryRecord> listed;
  for (const ListPosition& position : positions) {
    if (std::ssize(listed.items) == page.size) {
      listed.next = positions[static_cast<size_t>(page.size) - 1].Text();
      break;
    }
    listed.items.push_back(shared->memories.at(position.id));
  }
  return listed;
}

base::StatusOr<std::vector<TurnRecord>> MemoriesImpl::SourceTurns(const UserRef& user,
                                                                  const MemoryRecord& memory) {
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  if (!shared->FindMemory(memory.id)) return MemoryNotFound();
  std::vector<TurnRecord> turns;
  for (const int64_t number : memory.source_turns) {
    KVASIR_ASSIGN_OR_RETURN(
        TurnRecord turn,
        Read<TurnRecord>(*core_.store, TurnKey(shared->key, memory.session, number)));
    if (turn.state != TurnRecord::State::kDeleted) turns.push_back(std::move(turn));
  }
  return turns;
}

base::StatusOr<MemoryRecord> MemoriesImpl::BuildNow(const UserRef& user,
                                                    const std::string& memory) {
  KVASIR_ASSIGN_OR_RETURN(const MemoryRecord record, Get(user, memory));
  const std::atomic<bool> cancelled = false;
  return BuildMemory(core_, user, record.session, kv::BuildUrgency::kChat, cancelled);
}

void MemoriesImpl::RecordUse(const UserRef& user, const store::RecordId& memory) {
  const auto shared = core_.users.Shared(user);
  if (!shared.ok()) return;
  UserState& state = **shared;
  absl::MutexLock lock(&state.mutex);
  const auto found = state.memories.find(memory);
  if (found == state.memories.end()) return;
  ++found->second.use_count;
  found->second.last_use_us = core_.now_us();
  state.unsaved_uses.insert(memory);
}

void SaveUses(Core& core) {
  for (const std::shared_ptr<UserState>& state : core.users.InRam()) {
    std::set<store::RecordId> unsaved;
    {
      absl::MutexLock lock(&state->mutex);
      unsaved.swap(state->unsaved_uses);
    }
    for (const store::RecordId& id : unsaved) {
      absl::ReaderMutexLock gate(&state->gate);
      if (state->erased || state->erasing) break;
      const std::optional<MemoryRecord> memory = state->FindMemory(id);
      if (!memory) continue;
      absl::MutexLock session_lock(&state->LockOf(memory->session));
      // Read again: only under the session's lock is it the stored one.
      store::Batch batch;
      batch.Put(MemoryKey(state->key, id), Encode(*state->FindMemory(id)));
      if (core.store->Commit(batch).ok()) continue;
      absl::MutexLock lock(&state->mutex);
      state->unsaved_uses.insert(id);
    }
  }
}

}  // namespace kvasir::service
