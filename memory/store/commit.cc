// RocksStore::Commit: chunks, flush, one synced batch, removal of dropped chunks; in that order.
#include <set>

#include "engine/base/check.h"
#include "memory/store/rocks_store.h"

namespace kvasir::store {
namespace {

RecordKey RowKey(const UserKey& user, const kv::SegmentId& id) {
  return {user, Kind::kSegment, RecordId{id}, 0};
}

}  // namespace

struct RocksStore::Changes {
  std::vector<const Batch::AddedSegment*> added;
  std::vector<SegmentRow> dropped;  // those that exist
};

// Registers a commit's segments before the first chunk is written, until the row is durable.
class RocksStore::InFlight {
 public:
  explicit InFlight(RocksStore& store) : store_(store) {}
  ~InFlight() {
    absl::MutexLock lock(&store_.in_flight_mutex_);
    for (const auto& entry : mine_) {
      if (doubt_) {
        store_.in_flight_[entry] = Flight::kDoubt;
      } else {
        store_.in_flight_.erase(entry);
      }
    }
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // False when a commit with this segment is running.
  bool Add(const UserKey& user, const kv::SegmentId& id) {
    absl::MutexLock lock(&store_.in_flight_mutex_);
    const auto [entry, added] = store_.in_flight_.try_emplace({user, id}, Flight::kActive);
    if (!added && entry->second == Flight::kActive) return false;
    entry->second = Flight::kActive;
    mine_.emplace_back(user, id);
    return true;
  }
  // From here to the end of the commit: its batch may have reached the log.
  void set_doubt(bool doubt) { doubt_ = doubt; }

 private:
  RocksStore& store_;
  std::vector<std::pair<UserKey, kv::SegmentId>> mine_;
  bool doubt_ = false;
};

base::Status RocksStore::CheckPut(const Batch::PutRecord& put) const {
  if (put.key.kind == Kind::kSegment) {
    return base::InvalidArgument("records of kind {} are written by AddSegment and DropSegment",
                                 static_cast<int>(Kind::kSegment));
  }
  const auto kind = static_cast<uint8_t>(put.key.kind);
  if (kind == 0 || kind > kKindMax) return base::InvalidArgument("record of kind {}", kind);
  if (put.value.size() > options_.value_bytes_max) {
    return base::InvalidArgument("value of {} bytes, the store accepts at most {}",
                                 put.value.size(), options_.value_bytes_max);
  }
  return base::OkStatus();
}

base::Status RocksStore::CheckSegment(const Batch::AddedSegment& added) const {
  if (added.segment == nullptr) return base::InvalidArgument("segment to add is null");
  if (added.segment->bytes() > options_.segment_bytes_max) {
    return base::InvalidArgument("segment of {} bytes, the store accepts at most {}",
                                 added.segment->bytes(), options_.segment_bytes_max);
  }
  return base::OkStatus();
}

base::StatusOr<RocksStore::Changes> RocksStore::Plan(const Batch& batch) const {
  if (batch.size() > options_.batch_changes_max) {
    return base::InvalidArgument("batch of {} changes, the store accepts at most {}", batch.size(),
                                 options_.batch_changes_max);
  }
  Changes changes;
  std::set<std::pair<UserKey, kv::SegmentId>> drops;
  size_t bytes = 0;
  for (const Batch::Change& change : batch.changes()) {
    bytes += kRecordKeyBytes;
    if (const auto* put = std::get_if<Batch::PutRecord>(&change)) {
      KVASIR_RETURN_IF_ERROR(CheckPut(*put));
      bytes += put->value.size();
    } else if (const auto* removed = std::get_if<Batch::DeleteRecord>(&change)) {
      if (removed->key.kind == Kind::kSegment) return CheckPut({removed->key, ""});
    } else if (const auto* added = std::get_if<Batch::AddedSegment>(&change)) {
      KVASIR_RETURN_IF_ERROR(CheckSegment(*added));
      changes.added.push_back(added);
    } else if (const auto* dropped = std::get_if<Batch::DroppedSegment>(&change)) {
      if (!drops.emplace(dropped->user, dropped->id).second) continue;
      auto row = GetSegment(dropped->user, dropped->id);
      if (row.ok()) changes.dropped.push_back(std::move(row).value());
      if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
    }
  }
  if (bytes > options_.batch_bytes_max) {
    return base::InvalidArgument("batch of {} bytes, the store accepts at most {}", bytes,
                                 options_.batch_bytes_max);
  }
  for (const Batch::AddedSegment* added : changes.added) {
    if (drops.contains({added->user, added->segment->id})) {
      return base::InvalidArgument("segment {} is added and dropped in one batch",
                                   RecordId{added->segment->id}.Hex());
    }
  }
  return changes;
}

base::Status RocksStore::Commit(const Batch& batch) {
  KVASIR_ASSIGN_OR_RETURN(const Changes changes, Plan(batch));
  InFlight in_flight(*this);
  for (const Batch::AddedSegment* added : changes.added) {
    const bool free = in_flight.Add(added->user, added->segment->id);
    const auto row = GetSegment(added->user, added->segment->id);
    if (!free || row.ok()) {
      return base::AlreadyExists("segment {} exists", RecordId{added->segment->id}.Hex());
    }
    if (!absl::IsNotFound(row.status())) return row.status();
  }
  MetaBatch records(key_ring(), *options_.entropy);
  for (const Batch::Change& change : batch.changes()) {
    if (const auto* put = std::get_if<Batch::PutRecord>(&change)) {
      KVASIR_RETURN_IF_ERROR(records.Put(put->key, put->value));
    } else if (const auto* removed = std::get_if<Batch::DeleteRecord>(&change)) {
      records.Delete(removed->key);
    } else if (const auto* added = std::get_if<Batch::AddedSegment>(&change)) {
      const kv::EncodedSegment& segment = *added->segment;
      const SegmentRow row = {added->user, segment.id, segment.digest,
                              static_cast<int32_t>(segment.chunks.size()), segment.bytes()};
      KVASIR_RETURN_IF_ERROR(records.Put(RowKey(added->user, segment.id), EncodeRow(row)));
    }
  }
  for (const SegmentRow& row : changes.dropped) records.Delete(RowKey(row.user, row.id));
  for (const Batch::AddedSegment* added : changes.added) {
    KVASIR_RETURN_IF_ERROR(states_.Put(added->user, *added->segment));
  }
  if (!changes.added.empty()) KVASIR_RETURN_IF_ERROR(states_.Flush());
  in_flight.set_doubt(true);
  KVASIR_RETURN_IF_ERROR(meta_.Write(records));
  in_flight.set_doubt(false);
  commits_.fetch_add(1);
  // The batch is durable: chunks that can not be removed now are orphans for the next sweep.
  for (const SegmentRow& row : changes.dropped) {
    states_.Delete(row.user, row.id, row.chunk_count + 1).IgnoreError();
  }
  return base::OkStatus();
}

}  // namespace kvasir::store
