#include "memory/store/states.h"

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>

#include <algorithm>

namespace kvasir::store {
namespace {

RecordId ToRecordId(const kv::SegmentId& id) { return {id}; }

std::string PartKey(const UserKey& user, const kv::SegmentId& id, int part) {
  return EncodeKey({user, Kind::kSegment, ToRecordId(id), static_cast<uint64_t>(part)});
}

rocksdb::WriteOptions Unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

// Chunks are read once and kept decoded elsewhere: they must not push records out of the cache.
rocksdb::ReadOptions Uncached() {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return options;
}

base::StatusOr<RecordKey> StateKeyAt(const rocksdb::Iterator& cursor) {
  const std::string_view bytes = cursor.key().ToStringView();
  const std::optional<RecordKey> key = DecodeKey(bytes);
  if (key.has_value() && key->kind == Kind::kSegment) return *key;
  return base::DataLoss("states has the key {}, which is none of format {}",
                        base::ToHex(base::AsBytes(bytes)), kStoreFormat);
}

}  // namespace

States::States(std::unique_ptr<Instance> instance) : instance_(std::move(instance)) {}
States::~States() = default;

base::Status States::Put(const UserKey& user, const kv::EncodedSegment& segment) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  const auto put = [&](int part, const std::string& bytes) {
    return instance_->Written(
        instance_->db().Put(Unlogged(), PartKey(user, segment.id, part), bytes),
        "cannot write a chunk");
  };
  KVASIR_RETURN_IF_ERROR(put(0, segment.header));
  for (size_t i = 0; i < segment.chunks.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(put(static_cast<int>(i) + 1, segment.chunks[i]));
  }
  return base::OkStatus();
}

base::Status States::Flush() {
  absl::MutexLock lock(&mutex_);
  const uint64_t mine = ++asked_;
  while (durable_ < mine) {
    if (flushing_) {
      flushed_.Wait(&mutex_);
      continue;
    }
    flushing_ = true;
    const uint64_t covers = asked_;
    mutex_.Unlock();
    const base::Status status =
        instance_->Written(instance_->db().Flush(rocksdb::FlushOptions()), "cannot flush chunks");
    mutex_.Lock();
    flushing_ = false;
    ++flushes_;
    if (status.ok()) durable_ = std::max(durable_, covers);
    flushed_.SignalAll();
    if (!status.ok()) return status;
  }
  return base::OkStatus();
}

base::StatusOr<std::string> States::Get(const UserKey& user, const kv::SegmentId& id,
                                        int part) const {
  std::string bytes;
  const rocksdb::Status status = instance_->db().Get(Uncached(), PartKey(user, id, part), &bytes);
  if (status.ok()) return bytes;
  return FromRocks(status,
                   fmt::format("cannot read part {} of segment {}", part, ToRecordId(id).Hex()));
}

base::Status States::Delete(const UserKey& user, const kv::SegmentId& id, int parts) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  for (int part = 0; part < parts; ++part) {
    KVASIR_RETURN_IF_ERROR(instance_->Written(
        instance_->db().Delete(Unlogged(), PartKey(user, id, part)), "cannot remove a chunk"));
  }
  return base::OkStatus();
}

base::StatusOr<uint64_t> States::DeleteAll(const UserKey& user, const kv::SegmentId& id) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  const std::string begin = IdPrefix(user, Kind::kSegment, ToRecordId(id));
  const std::string end = PrefixEnd(begin);
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions read = Uncached();
  read.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> cursor(instance_->db().NewIterator(read));
  uint64_t removed = 0;
  for (cursor->Seek(begin); cursor->Valid(); cursor->Next(), ++removed) {
    KVASIR_RETURN_IF_ERROR(instance_->Written(instance_->db().Delete(Unlogged(), cursor->key()),
                                              "cannot remove a chunk"));
  }
  KVASIR_RETURN_IF_ERROR(FromRocks(cursor->status(), "cannot list chunks"));
  return removed;
}

base::Status States::ForEachSegment(
    const std::function<base::Status(const UserKey&, const kv::SegmentId&)>& visit) const {
  const std::unique_ptr<rocksdb::Iterator> cursor(instance_->db().NewIterator(Uncached()));
  cursor->SeekToFirst();
  while (cursor->Valid()) {
    KVASIR_ASSIGN_OR_RETURN(const RecordKey key, StateKeyAt(*cursor));
    KVASIR_RETURN_IF_ERROR(visit(key.user, key.id.bytes));
    cursor->Seek(PrefixEnd(IdPrefix(key.user, Kind::kSegment, key.id)));
  }
  return FromRocks(cursor->status(), "cannot list segments");
}

base::Status States::DropUser(const UserKey& user) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  const std::string begin = UserPrefix(user);
  rocksdb::DB& db = instance_->db();
  KVASIR_RETURN_IF_ERROR(instance_->Written(
      db.DeleteRange(Unlogged(), db.DefaultColumnFamily(), begin, PrefixEnd(begin)),
      "cannot drop a user's chunks"));
  return instance_->PurgeUser(user);
}

uint64_t States::flushes() const {
  absl::MutexLock lock(&mutex_);
  return flushes_;
}

}  // namespace kvasir::store
