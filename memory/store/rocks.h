// What both RocksDB instances share: opening, errors, key ranges. Internal; RocksDB's headers are
// included by .cc files only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "memory/store/store.h"

namespace rocksdb {
class Cache;
class DB;
class Env;
class Status;
}  // namespace rocksdb

namespace kvasir::store {

// `status` as ours, with what was being done before its message. Corruption is DataLoss; everything
// the disk did is Unavailable.
base::Status FromRocks(const rocksdb::Status& status, std::string_view doing);

struct InstanceOptions {
  std::string path;
  const Options* limits = nullptr;
  std::shared_ptr<rocksdb::Cache> cache;  // shared by both
  rocksdb::Env* env = nullptr;            // null: the machine's
  bool create = false;                    // otherwise an absent instance is an error
};

// One RocksDB database. Threads: all methods may be called concurrently.
class Instance {
 public:
  // `meta`: small records, write-ahead log. Errors: DataLoss, Unavailable.
  static base::StatusOr<std::unique_ptr<Instance>> OpenMeta(const InstanceOptions& options);
  // `states`: large immutable values, files cut at users.
  static base::StatusOr<std::unique_ptr<Instance>> OpenStates(const InstanceOptions& options);
  // Closes; what was not flushed and has no log is flushed first.
  ~Instance();

  rocksdb::DB& db() const { return *db_; }
  // The status of a write as ours. After a failure the instance refuses writes until Recover.
  base::Status Written(const rocksdb::Status& status, std::string_view doing);
  // Called before a write: after a failure, asks RocksDB to resume. Errors: Unavailable (the
  // failure stands; some last until the store is reopened).
  base::Status Recover();
  bool failed() const { return failed_.load(); }

  // Rewrites all files that hold keys of `user` without its deleted ones, and waits until files
  // that became obsolete are gone. Errors: Unavailable, DataLoss.
  base::Status PurgeUser(const UserKey& user);
  uint64_t Property(const char* name) const;

 private:
  explicit Instance(std::unique_ptr<rocksdb::DB> db);
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> failed_ = false;
};

// The first key past all keys that begin with `prefix`.
std::string PrefixEnd(std::string prefix);
std::string UserPrefix(const UserKey& user);
std::string KindPrefix(const UserKey& user, Kind kind);
std::string IdPrefix(const UserKey& user, Kind kind, const RecordId& id);

// Store::Open with RocksDB's file access through `env` (fault injection in tests).
base::StatusOr<std::unique_ptr<Store>> OpenStoreWithEnv(const Options& options, rocksdb::Env* env);

}  // namespace kvasir::store
