#include "memory/store/meta.h"

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/write_batch.h>

#include <algorithm>

#include "memory/store/value_seal.h"

namespace kvasir::store {
namespace {

rocksdb::WriteOptions Synced() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

base::StatusOr<RecordKey> KeyAt(const rocksdb::Iterator& cursor) {
  const std::string_view bytes = cursor.key().ToStringView();
  const std::optional<RecordKey> key = DecodeKey(bytes);
  if (key.has_value()) return *key;
  return base::DataLoss("meta has the key {}, which is none of format {}",
                        base::ToHex(base::AsBytes(bytes)), kStoreFormat);
}

bool InRange(const ScanOptions& options, const RecordKey& key) {
  return key.user == options.user && key.kind == options.kind &&
         (!options.id.has_value() || key.id == *options.id);
}

// From `key` of another kind on to where the user's records of `kind` begin, or the next user's.
void SkipToKind(rocksdb::Iterator& cursor, const RecordKey& key, Kind kind) {
  cursor.Seek(key.kind < kind ? KindPrefix(key.user, kind) : PrefixEnd(UserPrefix(key.user)));
}

}  // namespace

MetaBatch::MetaBatch(const KeyRing& keys, base::Entropy& entropy)
    : keys_(keys), entropy_(entropy), batch_(std::make_unique<rocksdb::WriteBatch>()) {}
MetaBatch::~MetaBatch() = default;

base::Status MetaBatch::Put(const RecordKey& key, std::string_view value) {
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey data_key, keys_.UserDataKey(key.user));
  const std::string bytes = EncodeKey(key);
  return FromRocks(batch_->Put(bytes, SealValue(data_key, bytes, value, entropy_)),
                   "cannot add to a batch");
}

void MetaBatch::Delete(const RecordKey& key) {
  batch_->Delete(EncodeKey(key)).PermitUncheckedError();
}

Meta::Meta(std::unique_ptr<Instance> instance, const KeyRing& keys, const Options& limits)
    : instance_(std::move(instance)), keys_(keys), limits_(limits) {}
Meta::~Meta() = default;

base::Status Meta::Write(MetaBatch& batch) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  return instance_->Written(instance_->db().Write(Synced(), &batch.batch()), "cannot commit");
}

base::StatusOr<std::string> Meta::Get(const RecordKey& key) const {
  const std::string bytes = EncodeKey(key);
  rocksdb::PinnableSlice sealed;
  rocksdb::DB& db = instance_->db();
  const rocksdb::Status status =
      db.Get(rocksdb::ReadOptions(), db.DefaultColumnFamily(), bytes, &sealed);
  if (status.IsNotFound()) {
    return base::NotFound("no record {}", base::ToHex(base::AsBytes(bytes)));
  }
  KVASIR_RETURN_IF_ERROR(FromRocks(status, "cannot read a record"));
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey data_key, keys_.UserDataKey(key.user));
  return OpenValue(data_key, bytes, sealed.ToStringView());
}

base::StatusOr<bool> Meta::Add(const rocksdb::Iterator& cursor, const RecordKey& key,
                               size_t records_max, size_t& bytes, Page& page) const {
  const bool room = page.records.empty() || bytes + cursor.value().size() <= limits_.scan_bytes_max;
  if (page.records.size() >= records_max || !room) {
    page.more = true;
    return false;
  }
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey data_key, keys_.UserDataKey(key.user));
  KVASIR_ASSIGN_OR_RETURN(std::string value, OpenValue(data_key, cursor.key().ToStringView(),
                                                       cursor.value().ToStringView()));
  bytes += cursor.value().size();
  page.records.push_back({key, std::move(value)});
  return true;
}

base::StatusOr<Page> Meta::Scan(const ScanOptions& options) const {
  if (options.after.has_value() && !InRange(options, *options.after)) {
    return base::InvalidArgument("scan continues after a record outside its range");
  }
  const std::string begin = options.id.has_value()
                                ? IdPrefix(options.user, options.kind, *options.id)
                                : KindPrefix(options.user, options.kind);
  const std::string end = PrefixEnd(begin);
  const std::string after = options.after.has_value() ? EncodeKey(*options.after) : "";
  const rocksdb::Slice lower(begin);
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions read;
  read.iterate_lower_bound = &lower;
  read.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> cursor(instance_->db().NewIterator(read));
  const bool ascending = options.order == ScanOptions::Order::kAscending;
  if (after.empty()) {
    ascending ? cursor->SeekToFirst() : cursor->SeekToLast();
  } else {
    ascending ? cursor->Seek(after) : cursor->SeekForPrev(after);
  }
  Page page;
  size_t bytes = 0;
  const size_t records_max = std::min(options.records_max, limits_.scan_records_max);
  for (; cursor->Valid(); ascending ? cursor->Next() : cursor->Prev()) {
    KVASIR_ASSIGN_OR_RETURN(const RecordKey key, KeyAt(*cursor));
    if (options.after.has_value() && key == *options.after) continue;
    KVASIR_ASSIGN_OR_RETURN(const bool added, Add(*cursor, key, records_max, bytes, page));
    if (!added) break;
  }
  KVASIR_RETURN_IF_ERROR(FromRocks(cursor->status(), "cannot scan records"));
  return page;
}

base::StatusOr<Page> Meta::ScanAllUsers(Kind kind, const std::optional<RecordKey>& after,
                                        size_t records_max) const {
  if (after.has_value() && after->kind != kind) {
    return base::InvalidArgument("scan continues after a record of kind {}, it is over kind {}",
                                 static_cast<int>(after->kind), static_cast<int>(kind));
  }
  const std::unique_ptr<rocksdb::Iterator> cursor(
      instance_->db().NewIterator(rocksdb::ReadOptions()));
  cursor->Seek(after.has_value() ? EncodeKey(*after) : KindPrefix(UserKey(), kind));
  Page page;
  size_t bytes = 0;
  records_max = std::min(records_max, limits_.scan_records_max);
  while (cursor->Valid()) {
    KVASIR_ASSIGN_OR_RETURN(const RecordKey key, KeyAt(*cursor));
    if (key.kind != kind) {
      SkipToKind(*cursor, key, kind);
    } else {
      if (!after.has_value() || key != *after) {
        KVASIR_ASSIGN_OR_RETURN(const bool added, Add(*cursor, key, records_max, bytes, page));
        if (!added) break;
      }
      cursor->Next();
    }
  }
  KVASIR_RETURN_IF_ERROR(FromRocks(cursor->status(), "cannot scan records of all users"));
  return page;
}

base::StatusOr<int64_t> Meta::CountRecords(Kind kind, const std::optional<UserKey>& user) const {
  const std::string begin = user.has_value() ? UserPrefix(*user) : UserPrefix(UserKey());
  const std::string end = user.has_value() ? PrefixEnd(begin) : "";
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions read;
  if (user.has_value()) read.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> cursor(instance_->db().NewIterator(read));
  cursor->Seek(KindPrefix(user.value_or(UserKey()), kind));
  int64_t count = 0;
  while (cursor->Valid()) {
    KVASIR_ASSIGN_OR_RETURN(const RecordKey key, KeyAt(*cursor));
    if (key.kind != kind) {
      SkipToKind(*cursor, key, kind);
    } else {
      ++count;
      cursor->Next();
    }
  }
  KVASIR_RETURN_IF_ERROR(FromRocks(cursor->status(), "cannot count records"));
  return count;
}

base::Status Meta::DropUser(const UserKey& user) {
  KVASIR_RETURN_IF_ERROR(instance_->Recover());
  const std::string begin = UserPrefix(user);
  rocksdb::WriteBatch batch;
  KVASIR_RETURN_IF_ERROR(
      FromRocks(batch.DeleteRange(begin, PrefixEnd(begin)), "cannot add to a batch"));
  KVASIR_RETURN_IF_ERROR(
      instance_->Written(instance_->db().Write(Synced(), &batch), "cannot drop a user's records"));
  return instance_->PurgeUser(user);
}

}  // namespace kvasir::store
