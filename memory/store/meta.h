// Meta: the instance of small records; seals values. Internal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "memory/store/key_ring.h"
#include "memory/store/rocks.h"

namespace rocksdb {
class Iterator;
class WriteBatch;
}  // namespace rocksdb

namespace kvasir::store {

// A batch under construction: sealed records.
class MetaBatch {
 public:
  MetaBatch(const KeyRing& keys, base::Entropy& entropy);
  ~MetaBatch();
  // Errors: NotFound (the user's key was destroyed).
  base::Status Put(const RecordKey& key, std::string_view value);
  void Delete(const RecordKey& key);
  rocksdb::WriteBatch& batch() { return *batch_; }

 private:
  const KeyRing& keys_;
  base::Entropy& entropy_;
  std::unique_ptr<rocksdb::WriteBatch> batch_;
};

class Meta {
 public:
  Meta(std::unique_ptr<Instance> instance, const KeyRing& keys, const Options& limits);
  ~Meta();

  // One synced write. Errors: Unavailable.
  base::Status Write(MetaBatch& batch);
  base::StatusOr<std::string> Get(const RecordKey& key) const;
  base::StatusOr<Page> Scan(const ScanOptions& options) const;
  base::StatusOr<Page> ScanAllUsers(Kind kind, const std::optional<RecordKey>& after,
                                    size_t records_max) const;
  base::StatusOr<int64_t> CountRecords(Kind kind, const std::optional<UserKey>& user) const;
  // Removes all records of `user` (one synced write), then their bytes.
  base::Status DropUser(const UserKey& user);
  Instance& instance() const { return *instance_; }

 private:
  // Adds the record under `cursor`. False: the page is full, the record was not added.
  base::StatusOr<bool> Add(const rocksdb::Iterator& cursor, const RecordKey& key,
                           size_t records_max, size_t& bytes, Page& page) const;

  std::unique_ptr<Instance> instance_;
  const KeyRing& keys_;
  const Options& limits_;
};

}  // namespace kvasir::store
