// Records in the store: their keys, and typed reads. Internal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "memory/service/records.h"
#include "memory/service/records_codec.h"
#include "memory/store/store.h"

namespace kvasir::service {

// The id of a user's sweep job; there is one.
inline constexpr store::RecordId kSweepJob{{0x73, 0x77, 0x65, 0x65, 0x70}};

inline store::RecordKey UserRowKey(const store::UserKey& user) {
  return {user, store::Kind::kUser, store::RecordId{}, 0};
}
inline store::RecordKey SessionKey(const store::UserKey& user, const store::RecordId& session) {
  return {user, store::Kind::kSession, session, 0};
}
inline store::RecordKey TurnKey(const store::UserKey& user, const store::RecordId& session,
                                int64_t number) {
  return {user, store::Kind::kTurn, session, static_cast<uint64_t>(number)};
}
inline store::RecordKey MemoryKey(const store::UserKey& user, const store::RecordId& memory) {
  return {user, store::Kind::kMemory, memory, 0};
}
// Terms of one turn of the memory's session (index::kDateLine: of its date line).
inline store::RecordKey PostingsKey(const store::UserKey& user, const store::RecordId& memory,
                                    int64_t turn) {
  return {user, store::Kind::kPostings, memory, static_cast<uint64_t>(turn)};
}
inline store::RecordKey CheckpointKey(const store::UserKey& user, const store::RecordId& session,
                                      size_t part) {
  return {user, store::Kind::kCheckpoint, session, part};
}
inline store::RecordKey JobKey(const store::UserKey& user, const store::RecordId& job) {
  return {user, store::Kind::kJob, job, 0};
}
inline store::RecordKey TombstoneKey(const store::UserKey& user, const store::RecordId& id) {
  return {user, store::Kind::kTombstone, id, 0};
}
inline store::RecordKey ErasureKey(const store::RecordId& erasure) {
  return {store::kSystemUser, store::Kind::kOperation, erasure, 0};
}

// The record of type T under `key`. Errors: NotFound, DataLoss, Unavailable.
template <typename T>
base::StatusOr<T> Read(const store::Store& store, const store::RecordKey& key) {
  KVASIR_ASSIGN_OR_RETURN(const std::string bytes, store.Get(key));
  return Decode<T>(bytes);
}

// Calls `visit` for every record of `kind` (of `id`, when given) in key order, until it fails.
// Errors: of `visit`, DataLoss, Unavailable.
base::Status ForEachRecord(const store::Store& store, const store::UserKey& user, store::Kind kind,
                           const std::optional<store::RecordId>& id,
                           const std::function<base::Status(const store::Record&)>& visit);
// The same for every segment row of the user.
base::Status ForEachSegment(const store::Store& store, const store::UserKey& user,
                            const std::function<void(const store::SegmentRow&)>& visit);

// The rows of a session's checkpoint, in order.
base::StatusOr<std::vector<CheckpointRow>> ReadCheckpoint(const store::Store& store,
                                                          const store::UserKey& user,
                                                          const store::RecordId& session);
// The turns [first, last] of a session that exist, in order.
base::StatusOr<std::vector<TurnRecord>> ReadTurns(const store::Store& store,
                                                  const store::UserKey& user,
                                                  const store::RecordId& session, int64_t first,
                                                  int64_t last);

// The id that 32 lower-case hexadecimal digits name, or nothing.
std::optional<store::RecordId> ParseRecordId(std::string_view hex);

}  // namespace kvasir::service
