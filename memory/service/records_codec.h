// Records to and from their stored form: CBOR maps (RFC 8949) with short keys (docs/formats.md).
//
// A reader takes absent fields as their defaults and passes over unknown ones, so that records of
// earlier and later versions stay readable. Errors of all: DataLoss (no CBOR map, or a field of
// another type or length; names record and field).
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "memory/service/records.h"

namespace kvasir::service {

// One row of a session's checkpoint (kCheckpoint): a part and the last turn whose tokens the
// checkpoint held when the row was written.
struct CheckpointRow {
  StatePart part;
  int64_t turn = 0;
};

// What stays of a deleted session or memory (kTombstone).
struct Tombstone {
  store::Kind kind = store::Kind::kMemory;
  int64_t delete_us = 0;
};

std::string Encode(const UserRecord& record);
std::string Encode(const SessionRecord& record);
std::string Encode(const TurnRecord& record);
std::string Encode(const MemoryRecord& record);
std::string Encode(const CheckpointRow& row);
std::string Encode(const JobRecord& record);
std::string Encode(const ErasureRecord& record);
std::string Encode(const Tombstone& tombstone);

// Decodes a record of type T, one of the above.
template <typename T>
base::StatusOr<T> Decode(std::string_view bytes);
template <>
base::StatusOr<UserRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<SessionRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<TurnRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<MemoryRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<CheckpointRow> Decode(std::string_view bytes);
template <>
base::StatusOr<JobRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<ErasureRecord> Decode(std::string_view bytes);
template <>
base::StatusOr<Tombstone> Decode(std::string_view bytes);

}  // namespace kvasir::service
