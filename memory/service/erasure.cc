#include "memory/service/erasure.h"

#include "memory/service/record_access.h"

namespace kvasir::service {
namespace {

base::StatusOr<int64_t> Count(const store::Store& store, const store::UserKey& user,
                              store::Kind kind) {
  int64_t count = 0;
  KVASIR_RETURN_IF_ERROR(ForEachRecord(store, user, kind, std::nullopt, [&](const store::Record&) {
    ++count;
    return base::OkStatus();
  }));
  return count;
}

base::StatusOr<int64_t> CountSegments(const store::Store& store, const store::UserKey& user) {
  int64_t count = 0;
  KVASIR_RETURN_IF_ERROR(ForEachSegment(store, user, [&](const store::SegmentRow&) { ++count; }));
  return count;
}

// Records and segments of the user that a scan of every kind finds.
base::StatusOr<int64_t> CountAll(const store::Store& store, const store::UserKey& user) {
  KVASIR_ASSIGN_OR_RETURN(int64_t count, CountSegments(store, user));
  for (int kind = 1; kind <= store::kKindMax; ++kind) {
    if (static_cast<store::Kind>(kind) == store::Kind::kSegment) continue;
    KVASIR_ASSIGN_OR_RETURN(const int64_t of_kind,
                            Count(store, user, static_cast<store::Kind>(kind)));
    count += of_kind;
  }
  return count;
}

}  // namespace

base::Status Erasures::Write(const ErasureRecord& record) {
  store::Batch batch;
  batch.Put(ErasureKey(record.id), Encode(record));
  return core_.store->Commit(batch);
}

base::StatusOr<ErasureRecord> Erasures::Begin(const UserState& user) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = unfinished_.find(user.key);
    if (found != unfinished_.end()) return found->second;
  }
  ErasureRecord record;
  record.id = store::NewRecordId(*core_.entropy);
  record.tenant = user.ref.tenant;
  record.user = user.key;
  record.request_us = core_.now_us();
  // A damaged record must not keep a user from being erased: then it is not counted.
  const auto count = [&](store::Kind kind) {
    return Count(*core_.store, user.key, kind).value_or(0);
  };
  record.sessions = count(store::Kind::kSession);
  record.turns = count(store::Kind::kTurn);
  record.memories = count(store::Kind::kMemory);
  record.segments = CountSegments(*core_.store, user.key).value_or(0);
  KVASIR_RETURN_IF_ERROR(Write(record));
  absl::MutexLock lock(&mutex_);
  unfinished_[user.key] = record;
  return record;
}

base::Status Erasures::Remove(ErasureRecord& record) {
  const store::UserKey user = record.user;
  core_.cache.PurgeUser(user);
  core_.jobs.RemoveUser(user);
  KVASIR_RETURN_IF_ERROR(core_.store->DropUser(user));
  KVASIR_ASSIGN_OR_RETURN(const int64_t left, CountAll(*core_.store, user));
  if (left > 0) return base::Unavailable("{} records are left after an erasure", left);
  record.state = ErasureRecord::State::kDone;
  record.done_us = core_.now_us();
  record.user = {};
  record.residual_records = 0;
  KVASIR_RETURN_IF_ERROR(Write(record));
  absl::MutexLock lock(&mutex_);
  unfinished_.erase(user);
  return base::OkStatus();
}

// A user that was not loaded: what the totals hold of it is what its keys say.
void Erasures::CountUnloaded(UserState& user) const {
  const auto count = [&](store::Kind kind) {
    return core_.store->CountRecords(kind, user.key).value_or(0);
  };
  const UserCounts counts{.users = count(store::Kind::kUser),
                          .sessions = count(store::Kind::kSession),
                          .memories = count(store::Kind::kMemory)};
  absl::MutexLock lock(&user.mutex);
  user.Recount(counts);
}

base::StatusOr<ErasureRecord> Erasures::Erase(const UserRef& user) {
  while (true) {
    const std::shared_ptr<UserState> state = core_.users.Find(user);
    // The fence: from here on nothing of the user is served, and running work gives up.
    state->erasing = true;
    if (DeletionListener* listener = core_.listener; listener != nullptr) {
      listener->OnUserErased(user);
    }
    worker_.Cancel(state->key);
    absl::MutexLock gate(&state->gate);
    if (state->erased) continue;  // by another call; the user may have come again
    if (!state->loaded) CountUnloaded(*state);
    auto record = Begin(*state);
    if (!record.ok()) {
      state->erasing = false;  // nothing was removed
      return record.status();
    }
    KVASIR_RETURN_IF_ERROR(Remove(*record));
    state->erased = true;
    {
      absl::MutexLock lock(&state->mutex);
      state->exists = false;
      state->record = {};
      state->sessions.clear();
      state->session_names.clear();
      state->memories.clear();
      state->index = index::LexicalIndex();
      state->running.clear();
      state->unsaved_uses.clear();
      state->Recount();
    }
    core_.users.Forget(state->key);
    return record;
  }
}

base::StatusOr<ErasureRecord> Erasures::Get(const std::string& tenant,
                                            const std::string& erasure_hex) const {
  const std::optional<store::RecordId> id = ParseRecordId(erasure_hex);
  if (!id) return base::NotFound("no such erasure");
  auto record = Read<ErasureRecord>(*core_.store, ErasureKey(*id));
  if (record.status().code() == absl::StatusCode::kNotFound ||
      (record.ok() && record->tenant != tenant)) {
    return base::NotFound("no such erasure");
  }
  return record;
}

base::Status Erasures::Resume() {
  std::vector<ErasureRecord> unfinished;
  KVASIR_RETURN_IF_ERROR(ForEachRecord(*core_.store, store::kSystemUser, store::Kind::kOperation,
                                       std::nullopt, [&](const store::Record& row) {
                                         KVASIR_ASSIGN_OR_RETURN(const ErasureRecord record,
                                                                 Decode<ErasureRecord>(row.value));
                                         if (record.state == ErasureRecord::State::kRunning) {
                                           unfinished.push_back(record);
                                         }
                                         return base::OkStatus();
                                       }));
  for (ErasureRecord& record : unfinished) KVASIR_RETURN_IF_ERROR(Remove(record));
  return base::OkStatus();
}

}  // namespace kvasir::service
