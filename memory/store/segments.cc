// RocksStore: reading, listing, sweeping of segments.
#include <cstring>

#include "memory/store/rocks_store.h"

namespace kvasir::store {
namespace {

constexpr size_t kRowBytes = 32 + 4 + 8;

template <typename... Args>
base::Status Corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return base::WithReason(base::DataLoss(format, std::forward<Args>(args)...), "STATE_CORRUPT");
}

}  // namespace

std::string EncodeRow(const SegmentRow& row) {
  std::string value(kRowBytes, '\0');
  std::memcpy(value.data(), row.digest.bytes.data(), 32);
  std::memcpy(value.data() + 32, &row.chunk_count, 4);
  std::memcpy(value.data() + 36, &row.bytes, 8);
  return value;
}

base::StatusOr<SegmentRow> DecodeRow(const RecordKey& key, std::string_view value) {
  SegmentRow row;
  if (value.size() == kRowBytes) {
    std::memcpy(row.digest.bytes.data(), value.data(), 32);
    std::memcpy(&row.chunk_count, value.data() + 32, 4);
    std::memcpy(&row.bytes, value.data() + 36, 8);
  }
  if (value.size() != kRowBytes || row.chunk_count < 0) {
    return base::DataLoss("row of segment {}: {} bytes, {} chunks", key.id.Hex(), value.size(),
                          row.chunk_count);
  }
  row.user = key.user;
  row.id = key.id.bytes;
  return row;
}

base::StatusOr<SegmentRow> RocksStore::GetSegment(const UserKey& user,
                                                  const kv::SegmentId& id) const {
  const RecordKey key = {user, Kind::kSegment, RecordId{id}, 0};
  const auto value = meta_.Get(key);
  if (absl::IsNotFound(value.status())) return base::NotFound("no segment {}", key.id.Hex());
  KVASIR_RETURN_IF_ERROR(value.status());
  return DecodeRow(key, *value);
}

base::StatusOr<SegmentPage> RocksStore::ListSegments(const UserKey& user,
                                                     const std::optional<kv::SegmentId>& after,
                                                     size_t segments_max) const {
  ScanOptions scan = {.user = user, .kind = Kind::kSegment, .id = {}, .after = {}};
  scan.records_max = segments_max;
  if (after.has_value()) scan.after = RecordKey{user, Kind::kSegment, RecordId{*after}, 0};
  KVASIR_ASSIGN_OR_RETURN(const Page page, meta_.Scan(scan));
  SegmentPage segments = {.segments = {}, .more = page.more};
  for (const Record& record : page.records) {
    KVASIR_ASSIGN_OR_RETURN(const SegmentRow row, DecodeRow(record.key, record.value));
    segments.segments.push_back(row);
  }
  return segments;
}

base::StatusOr<std::string> RocksStore::ReadPart(const SegmentRow& row, int part) const {
  auto bytes = states_.Get(row.user, row.id, part);
  if (bytes.ok() || absl::IsUnavailable(bytes.status())) return bytes;
  // Dropped since the row was read? Then nothing is damaged.
  KVASIR_RETURN_IF_ERROR(GetSegment(row.user, row.id).status());
  return Corrupt("segment {}: part {} of {} is lost: {}", RecordId{row.id}.Hex(), part,
                 row.chunk_count + 1, base::ToStd(bytes.status().message()));
}

base::StatusOr<std::string> RocksStore::ReadHeader(const UserKey& user,
                                                   const kv::SegmentId& id) const {
  KVASIR_ASSIGN_OR_RETURN(const SegmentRow row, GetSegment(user, id));
  return ReadPart(row, 0);
}

base::StatusOr<std::string> RocksStore::ReadChunk(const UserKey& user, const kv::SegmentId& id,
                                                  int chunk) const {
  KVASIR_ASSIGN_OR_RETURN(const SegmentRow row, GetSegment(user, id));
  if (chunk < 0 || chunk >= row.chunk_count) {
    return base::InvalidArgument("chunk {} of segment {}, which has {}", chunk, RecordId{id}.Hex(),
                                 row.chunk_count);
  }
  return ReadPart(row, chunk + 1);
}

base::StatusOr<kv::EncodedSegment> RocksStore::ReadSegment(const UserKey& user,
                                                           const kv::SegmentId& id) const {
  KVASIR_ASSIGN_OR_RETURN(const SegmentRow row, GetSegment(user, id));
  kv::EncodedSegment segment;
  segment.id = id;
  segment.digest = row.digest;
  KVASIR_ASSIGN_OR_RETURN(segment.header, ReadPart(row, 0));
  for (int chunk = 0; chunk < row.chunk_count; ++chunk) {
    KVASIR_ASSIGN_OR_RETURN(std::string bytes, ReadPart(row, chunk + 1));
    segment.chunks.push_back(std::move(bytes));
  }
  if (segment.bytes() != row.bytes) {
    return Corrupt("segment {}: {} bytes are here, its row says {}", RecordId{id}.Hex(),
                   segment.bytes(), row.bytes);
  }
  return segment;
}

base::StatusOr<std::vector<SegmentRow>> RocksStore::FindBrokenSegments(const UserKey& user) const {
  std::vector<SegmentRow> broken;
  std::optional<kv::SegmentId> after;
  bool more = true;
  while (more) {
    KVASIR_ASSIGN_OR_RETURN(const SegmentPage page,
                            ListSegments(user, after, options_.scan_records_max));
    for (const SegmentRow& row : page.segments) {
      const base::Status status = ReadSegment(user, row.id).status();
      if (absl::IsDataLoss(status)) broken.push_back(row);
      if (absl::IsUnavailable(status)) return status;
    }
    if (!page.segments.empty()) after = page.segments.back().id;
    more = page.more;
  }
  return broken;
}

base::Status RocksStore::SweepOne(const UserKey& user, const kv::SegmentId& id,
                                  SweepResult& result) {
  // A segment that is not in flight is either named by a row already, or nobody's: its commit
  // registered it before the first chunk was written and left after the row was durable, or not at
  // all when that is in doubt. The lock keeps a new commit of the same id out until its old chunks
  // are gone.
  absl::MutexLock lock(&in_flight_mutex_);
  ++result.segments_seen;
  if (in_flight_.contains({user, id})) return base::OkStatus();
  const base::Status row = GetSegment(user, id).status();
  if (!absl::IsNotFound(row)) return row;
  KVASIR_ASSIGN_OR_RETURN(const uint64_t removed, states_.DeleteAll(user, id));
  if (removed > 0) ++result.orphans_removed;
  result.orphan_chunks_removed += removed;
  return base::OkStatus();
}

base::StatusOr<SweepResult> RocksStore::SweepOrphans() {
  SweepResult result;
  KVASIR_RETURN_IF_ERROR(states_.ForEachSegment(
      [&](const UserKey& user, const kv::SegmentId& id) { return SweepOne(user, id, result); }));
  return result;
}

}  // namespace kvasir::store
