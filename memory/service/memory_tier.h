// MemoryTier: the memory service of one server: opens the store and owns sessions, memories,
// erasure, jobs and caches.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "engine/kv/state_builder.h"
#include "memory/service/memories.h"
#include "memory/service/sessions.h"

namespace kvasir::service {

// What the server must do at once when something is deleted or closed: drop live sequences, cancel
// running turns, purge caches. Called before Delete, Close or EraseUser returns, on the caller's
// thread; must not call back into the tier.
class DeletionListener {
 public:
  virtual ~DeletionListener() = default;
  // The state of this memory may be attended to no more.
  virtual void OnMemoryDeleted(const UserRef& user, const store::RecordId& memory) = 0;
  // The session's live state is void; `deleted`: the session itself is gone, not only its
  // checkpoint.
  virtual void OnSessionInvalidated(const UserRef& user, const std::string& session,
                                    bool deleted) = 0;
  virtual void OnUserErased(const UserRef& user) = 0;
};

struct TierOptions {
  std::string dir;
  size_t ram_cache_bytes = size_t{512} << 20;  // decoded states kept in RAM, all users
  size_t ram_cache_user_bytes = size_t{64}
                                << 20;  // kept for each recent user before others may take it
  int64_t session_turns_max = 4096;
  size_t message_bytes_max = size_t{1} << 20;
  int64_t sessions_per_user_max = 10000;
  int64_t memories_per_user_max = 10000;
  int64_t state_bytes_per_user_max = int64_t{8} << 30;
  int64_t session_idle_close_s = 900;
  int64_t request_id_hours = 24;
  int64_t jobs_max = 10000;
  int64_t loads_max = 4;           // at once
  int64_t users_in_ram_max = 256;  // catalogs and indexes kept of users that are not active
};

struct TierStats {
  int64_t users = 0, sessions = 0, memories = 0;  // in the store
  int64_t jobs_pending = 0, jobs_failed = 0;
  size_t ram_cache_bytes = 0;
  uint64_t meta_bytes = 0, state_bytes = 0;
  uint64_t loads_from_ram = 0, loads_from_disk = 0;
  std::vector<std::pair<std::string, uint64_t>> misses;  // by reason
};

// One finding of CheckConsistency.
struct Finding {
  // "MISSING_PART", "ORPHAN_CHUNK", "INDEX_WITHOUT_MEMORY", "MEMORY_WITHOUT_INDEX", "TURN_GAP",
  // "STALE_RUNNING", "JOB_WITHOUT_SESSION", "TURN_WITHOUT_SESSION", "CHECKPOINT_WITHOUT_SESSION",
  // "MEMORY_WITHOUT_SESSION"
  std::string kind;
  std::string detail;  // ids in hexadecimal; never a name or text
  bool mended = false;
};

struct ConsistencyReport {
  std::vector<Finding> findings;
  int64_t records = 0;  // that were read and compared, rows of segments included
};

enum class Repair { kNo, kYes };

class MemoryTier {
 public:
  // Opens the store, finishes erasures, resumes jobs. Turns that a crash left kRunning end as
  // kFailed when their user is first asked for. All pointers must outlive the result; `entropy` is
  // used concurrently. Errors: those of Store::Open; DataLoss, Unavailable.
  static base::StatusOr<std::unique_ptr<MemoryTier>> Open(const TierOptions& options,
                                                          const base::Clock* clock,
                                                          base::Entropy* entropy,
                                                          kv::StateBuilder* builder);
  virtual ~MemoryTier() = default;

  virtual Sessions& sessions() = 0;
  virtual Memories& memories() = 0;

  // At most one. Null: none.
  virtual void SetDeletionListener(DeletionListener* listener) = 0;
  // Starts and stops the background jobs. Stop returns within `deadline_us` (a length of time); a
  // running job is cancelled and stays queued.
  virtual void StartJobs() = 0;
  virtual void StopJobs(int64_t deadline_us) = 0;
  // Runs one pending job to its end, if any, and says whether there was one (tests, simulation).
  // REQUIRES: not started.
  virtual bool RunOneJob() = 0;

  // Removes every record, state and cached byte of `user`, then scans for what is left. Blocks.
  // Idempotent. The record of it outlives the user and holds nothing personal. Errors: Unavailable
  // (call again: the erasure goes on where it stopped, also by itself after a restart).
  virtual base::StatusOr<ErasureRecord> EraseUser(const UserRef& user) = 0;
  virtual base::StatusOr<ErasureRecord> GetErasure(const std::string& tenant,
                                                   const std::string& erasure_hex) = 0;
  // Errors: NotFound.
  virtual base::StatusOr<UserRecord> GetUser(const UserRef& user) = 0;

  // Compares all records of all users; holds up one user at a time. A damaged memory is mended by
  // queueing its rebuild. Errors: DataLoss, Unavailable.
  virtual base::StatusOr<ConsistencyReport> CheckConsistency(Repair repair) = 0;
  virtual TierStats GetStats() const = 0;
};

}  // namespace kvasir::service
