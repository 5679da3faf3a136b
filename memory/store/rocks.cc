#include "memory/store/rocks.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_partitioner.h>
#include <rocksdb/table.h>
#include <rocksdb/transaction_log.h>

namespace kvasir::store {
namespace {

constexpr size_t kUserKeyBytes = 16;

rocksdb::Options CommonOptions(const InstanceOptions& options) {
  rocksdb::Options rocks;
  rocks.create_if_missing = options.create;
  if (options.env != nullptr) rocks.env = options.env;
  rocks.compression = rocksdb::kNoCompression;  // values are ciphertext
  rocks.bottommost_compression = rocksdb::kNoCompression;
  rocks.max_open_files = options.limits->open_files_max;
  rocks.max_background_jobs = 2;
  rocks.max_write_buffer_number = 3;
  rocks.level_compaction_dynamic_level_bytes = true;
  rocks.recycle_log_file_num = 0;  // an old log's bytes must go with the log
  rocks.max_manifest_file_size = 4 << 20;
  rocks.info_log_level = rocksdb::WARN_LEVEL;
  rocks.max_log_file_size = options.limits->log_bytes_max;
  rocks.keep_log_file_num = 4;
  rocks.stats_dump_period_sec = 0;
  rocks.stats_persist_period_sec = 0;
  return rocks;
}

rocksdb::BlockBasedTableOptions TableOptions(const InstanceOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = options.cache;
  table.cache_index_and_filter_blocks = true;  // inside the cache's bound
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  return table;
}

base::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDb(const rocksdb::Options& options,
                                                    const std::string& path) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path, &db);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  // RocksDB calls an absent database an invalid argument.
  if (status.IsInvalidArgument()) {
    return base::DataLoss("cannot open {}: {}", path, status.ToString());
  }
  return FromRocks(status, "cannot open " + path);
}

}  // namespace

base::Status FromRocks(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return base::OkStatus();
  const std::string text = status.ToString();
  if (status.IsNotFound()) return base::NotFound("{}: {}", doing, text);
  if (status.IsCorruption()) return base::DataLoss("{}: {}", doing, text);
  if (status.IsInvalidArgument() || status.IsNotSupported()) {
    return base::Internal("{}: {}", doing, text);
  }
  return base::Unavailable("{}: {}", doing, text);
}

base::StatusOr<std::unique_ptr<Instance>> Instance::OpenMeta(const InstanceOptions& options) {
  rocksdb::Options rocks = CommonOptions(options);
  rocks.write_buffer_size = options.limits->meta_buffer_bytes;
  // A log whose middle is damaged is refused; the default would drop what follows in silence.
  rocks.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocks.track_and_verify_wals_in_manifest = true;
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions(options)));
  KVASIR_ASSIGN_OR_RETURN(auto db, OpenDb(rocks, options.path));
  return std::unique_ptr<Instance>(new Instance(std::move(db)));
}

base::StatusOr<std::unique_ptr<Instance>> Instance::OpenStates(const InstanceOptions& options) {
  rocksdb::Options rocks = CommonOptions(options);
  rocks.write_buffer_size = options.limits->states_buffer_bytes;
  // Every commit with segments makes one small file.
  rocks.level0_file_num_compaction_trigger = 8;
  rocks.level0_slowdown_writes_trigger = 32;
  rocks.level0_stop_writes_trigger = 64;
  rocks.sst_partitioner_factory = rocksdb::NewSstPartitionerFixedPrefixFactory(kUserKeyBytes);
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(TableOptions(options)));
  KVASIR_ASSIGN_OR_RETURN(auto db, OpenDb(rocks, options.path));
  return std::unique_ptr<Instance>(new Instance(std::move(db)));
}

Instance::Instance(std::unique_ptr<rocksdb::DB> db) : db_(std::move(db)) {}
Instance::~Instance() = default;

base::Status Instance::Written(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return base::OkStatus();
  failed_.store(true);
  return FromRocks(status, doing);
}

base::Status Instance::Recover() {
  if (!failed_.load()) return base::OkStatus();
  const rocksdb::Status status = db_->Resume();
  if (!status.ok()) return FromRocks(status, "an earlier write failed, cannot resume");
  failed_.store(false);
  return base::OkStatus();
}

base::Status Instance::PurgeUser(const UserKey& user) {
  KVASIR_RETURN_IF_ERROR(Written(db_->Flush(rocksdb::FlushOptions()), "cannot flush"));
  const std::string begin = UserPrefix(user);
  const std::string end = PrefixEnd(begin);
  const rocksdb::Slice from(begin);
  const rocksdb::Slice to(end);
  rocksdb::CompactRangeOptions compact;
  compact.exclusive_manual_compaction = false;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  KVASIR_RETURN_IF_ERROR(
      FromRocks(db_->CompactRange(compact, &from, &to), "cannot compact a user's files"));
  // Lists the logs only to wait for pending removals of files.
  rocksdb::VectorLogPtr logs;
  return FromRocks(db_->GetSortedWalFiles(logs), "cannot wait for obsolete files to be removed");
}

uint64_t Instance::Property(const char* name) const {
  uint64_t value = 0;
  return db_->GetIntProperty(name, &value) ? value : 0;
}

std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty() && static_cast<uint8_t>(prefix.back()) == 0xFF) prefix.pop_back();
  if (prefix.empty()) return std::string(kRecordKeyBytes + 1, '\xFF');
  prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

std::string UserPrefix(const UserKey& user) {
  return std::string(user.bytes.begin(), user.bytes.end());
}

std::string KindPrefix(const UserKey& user, Kind kind) {
  return UserPrefix(user) + static_cast<char>(kind);
}

std::string IdPrefix(const UserKey& user, Kind kind, const RecordId& id) {
  return KindPrefix(user, kind) + std::string(id.bytes.begin(), id.bytes.end());
}

}  // namespace kvasir::store
