// MemoryTier over the parts of this folder.
#include "memory/service/consistency.h"
#include "memory/service/erasure.h"
#include "memory/service/job_worker.h"
#include "memory/service/memories_impl.h"
#include "memory/service/record_access.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
namespace {

class Tier final : public MemoryTier {
 public:
  explicit Tier(std::unique_ptr<Core> core)
      : core_(std::move(core)),
        sessions_(core_.get()),
        memories_(core_.get()),
        worker_(core_.get()),
        erasures_(core_.get(), &worker_) {}

  Sessions& sessions() override { return sessions_; }
  Memories& memories() override { return memories_; }
  void SetDeletionListener(DeletionListener* listener) override { core_->listener = listener; }
  void StartJobs() override { worker_.Start(); }
  void StopJobs(int64_t deadline_us) override { worker_.Stop(deadline_us); }
  bool RunOneJob() override { return worker_.RunOne(); }

  base::StatusOr<ErasureRecord> EraseUser(const UserRef& user) override {
    return erasures_.Erase(user);
  }
  base::StatusOr<ErasureRecord> GetErasure(const std::string& tenant,
                                           const std::string& erasure_hex) override {
    return erasures_.Get(tenant, erasure_hex);
  }
  base::StatusOr<UserRecord> GetUser(const UserRef& user) override {
    KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_->users.Shared(user));
    absl::MutexLock lock(&shared->mutex);
    if (!shared->exists) return base::NotFound("no such user");
    return shared->record;
  }
  base::StatusOr<ConsistencyReport> CheckConsistency(Repair repair) override {
    return service::CheckConsistency(*core_, repair);
  }
  TierStats GetStats() const override;

  // Before anything is served: unfinished erasures, then the totals and the queue of jobs.
  base::Status Resume();

 private:
  const std::unique_ptr<Core> core_;
  SessionsImpl sessions_;
  MemoriesImpl memories_;
  JobWorker worker_;
  Erasures erasures_;
};

base::Status Tier::Resume() {
  KVASIR_RETURN_IF_ERROR(erasures_.Resume());
  KVASIR_RETURN_IF_ERROR(core_->totals.Count(*core_->store));
  std::optional<store::RecordKey> after;
  while (true) {
    KVASIR_ASSIGN_OR_RETURN(const store::Page page,
                            core_->store->ScanAllUsers(store::Kind::kJob, after, 1000));
    for (const store::Record& record : page.records) {
      KVASIR_ASSIGN_OR_RETURN(const JobRecord job, Decode<JobRecord>(record.value));
      core_->jobs.Set(record.key.user, job);
    }
    if (!page.more) return base::OkStatus();
    after = page.records.back().key;
  }
}

TierStats Tier::GetStats() const {
  TierStats stats;
  const store::Stats store = core_->store->GetStats();
  const UserCounts totals = core_->totals.Get();
  stats.users = totals.users;
  stats.sessions = totals.sessions;
  stats.memories = totals.memories;
  stats.jobs_pending = core_->jobs.size();
  stats.ram_cache_bytes = core_->cache.bytes();
  stats.meta_bytes = store.meta_file_bytes;
  stats.state_bytes = store.states_file_bytes;
  absl::MutexLock lock(&core_->counters.mutex);
  stats.jobs_failed = core_->counters.jobs_failed;
  stats.loads_from_ram = core_->counters.loads_from_ram;
  stats.loads_from_disk = core_->counters.loads_from_disk;
  stats.misses.assign(core_->counters.misses.begin(), core_->counters.misses.end());
  return stats;
}

}  // namespace

base::StatusOr<std::unique_ptr<MemoryTier>> MemoryTier::Open(const TierOptions& options,
                                                             const base::Clock* clock,
                                                             base::Entropy* entropy,
                                                             kv::StateBuilder* builder) {
  KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<index::Analyzer> analyzer, index::Analyzer::Create());
  const store::Options store_options{.dir = options.dir, .clock = clock, .entropy = entropy};
  KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<store::Store> store, store::Store::Open(store_options));
  auto tier = std::make_unique<Tier>(std::make_unique<Core>(options, clock, entropy, builder,
                                                            std::move(store), std::move(analyzer)));
  KVASIR_RETURN_IF_ERROR(tier->Resume());
  return tier;
}

}  // namespace kvasir::service
