// Core: what all parts of the memory tier share. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/kv/state_builder.h"
#include "memory/index/analyzer.h"
#include "memory/service/job_queue.h"
#include "memory/service/memory_tier.h"
#include "memory/service/single_flight.h"
#include "memory/service/state_cache.h"
#include "memory/service/users.h"
#include "memory/store/store.h"

namespace kvasir::service {

struct Counters {
  absl::Mutex mutex;
  uint64_t loads_from_ram ABSL_GUARDED_BY(mutex) = 0;
  uint64_t loads_from_disk ABSL_GUARDED_BY(mutex) = 0;
  std::map<std::string, uint64_t> misses ABSL_GUARDED_BY(mutex);
  int64_t jobs_failed ABSL_GUARDED_BY(mutex) = 0;

  void Miss(const std::string& reason) {
    absl::MutexLock lock(&mutex);
    ++misses[reason];
  }
};

struct Core {
  Core(const TierOptions& tier_options, const base::Clock* tier_clock, base::Entropy* tier_entropy,
       kv::StateBuilder* tier_builder, std::unique_ptr<store::Store> tier_store,
       std::unique_ptr<index::Analyzer> tier_analyzer)
      : options(tier_options),
        clock(tier_clock),
        entropy(tier_entropy),
        builder(tier_builder),
        store(std::move(tier_store)),
        analyzer(std::move(tier_analyzer)),
        users(store.get(), clock, &totals, options.users_in_ram_max),
        cache(options.ram_cache_bytes, options.ram_cache_user_bytes),
        loads(clock, options.loads_max) {}

  const TierOptions options;
  const base::Clock* const clock;
  base::Entropy* const entropy;
  kv::StateBuilder* const builder;
  const std::unique_ptr<store::Store> store;
  const std::unique_ptr<index::Analyzer> analyzer;
  Totals totals;
  Users users;
  StateCache cache;
  SingleFlight loads;
  JobQueue jobs;
  Counters counters;
  std::atomic<DeletionListener*> listener = nullptr;

  int64_t now_us() const { return clock->WallMicros(); }
  // Fails with ResourceExhausted reason LIMIT_REACHED when the queue is full.
  base::Status CheckRoomForJob(const store::UserKey& user, const store::RecordId& job) const {
    if (jobs.size() < options.jobs_max || jobs.Get(user, job)) return base::OkStatus();
    return base::WithReason(base::ResourceExhausted("{} jobs wait, the queue holds at most {}",
                                                    jobs.size(), options.jobs_max),
                            "LIMIT_REACHED");
  }
};

inline base::Status SessionNotFound() { return base::NotFound("no such session"); }
inline base::Status MemoryNotFound() { return base::NotFound("no such memory"); }
inline base::Status MemoryQuotaExceeded(std::string_view what, int64_t wanted, int64_t max) {
  return base::WithReason(
      base::ResourceExhausted("{} {} for this user, at most {}", wanted, what, max),
      "MEMORY_QUOTA_EXCEEDED");
}
inline base::Status LimitReached(std::string_view what, int64_t wanted, int64_t max) {
  return base::WithReason(base::ResourceExhausted("{} {}, at most {}", wanted, what, max),
                          "LIMIT_REACHED");
}

}  // namespace kvasir::service
