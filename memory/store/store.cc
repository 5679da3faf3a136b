#include "memory/store/store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>

#include "engine/base/check.h"
#include "memory/store/rocks_store.h"

namespace kvasir::store {

base::StatusOr<std::unique_ptr<Store>> Store::Open(const Options& options) {
  return OpenStoreWithEnv(options, nullptr);
}

base::StatusOr<std::unique_ptr<Store>> OpenStoreWithEnv(const Options& options, rocksdb::Env* env) {
  KVASIR_CHECK(options.clock != nullptr && options.entropy != nullptr);
  KVASIR_ASSIGN_OR_RETURN(auto directory,
                          DataDirectory::Open(options.dir, *options.clock, *options.entropy));
  InstanceOptions instance = {.path = directory->meta_path(),
                              .limits = &options,
                              .cache = rocksdb::NewLRUCache(options.cache_bytes),
                              .env = env,
                              .create = directory->fresh()};
  KVASIR_ASSIGN_OR_RETURN(auto meta, Instance::OpenMeta(instance));
  instance.path = directory->states_path();
  KVASIR_ASSIGN_OR_RETURN(auto states, Instance::OpenStates(instance));
  KVASIR_RETURN_IF_ERROR(directory->MarkComplete());
  return std::make_unique<RocksStore>(options, std::move(directory), std::move(meta),
                                      std::move(states));
}

RocksStore::RocksStore(const Options& options, std::unique_ptr<DataDirectory> directory,
                       std::unique_ptr<Instance> meta, std::unique_ptr<Instance> states)
    : options_(options),
      directory_(std::move(directory)),
      meta_(std::move(meta), directory_->key_ring(), options_),
      states_(std::move(states)) {}

base::StatusOr<std::string> RocksStore::Get(const RecordKey& key) const { return meta_.Get(key); }

base::StatusOr<Page> RocksStore::Scan(const ScanOptions& options) const {
  return meta_.Scan(options);
}

base::StatusOr<Page> RocksStore::ScanAllUsers(Kind kind, const std::optional<RecordKey>& after,
                                              size_t records_max) const {
  return meta_.ScanAllUsers(kind, after, records_max);
}

base::StatusOr<int64_t> RocksStore::CountRecords(Kind kind,
                                                 const std::optional<UserKey>& user) const {
  return meta_.CountRecords(kind, user);
}

base::Status RocksStore::DropUser(const UserKey& user) {
  KVASIR_RETURN_IF_ERROR(meta_.DropUser(user));
  return states_.DropUser(user);
}

Stats RocksStore::GetStats() const {
  const Instance& meta = meta_.instance();
  const Instance& states = states_.instance();
  Stats stats;
  stats.meta_file_bytes = meta.Property("rocksdb.total-sst-files-size");
  stats.states_file_bytes = states.Property("rocksdb.total-sst-files-size");
  stats.meta_records_estimate = meta.Property("rocksdb.estimate-num-keys");
  for (const Instance* instance : {&meta, &states}) {
    stats.memory_bytes += instance->Property("rocksdb.cur-size-all-mem-tables") +
                          instance->Property("rocksdb.estimate-table-readers-mem");
  }
  stats.memory_bytes += meta.Property("rocksdb.block-cache-usage");
  stats.commits = commits_.load();
  stats.states_flushes = states_.flushes();
  stats.commit_sequence = meta.db().GetLatestSequenceNumber();
  return stats;
}

}  // namespace kvasir::store
