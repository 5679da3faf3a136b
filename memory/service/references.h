// References: which segments the records of a user name. Internal.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/record_access.h"

namespace kvasir::service {

// What names a segment.
struct SegmentReferences {
  std::map<kv::SegmentId, base::Digest> required;  // by a memory or a checkpoint: must be there
  std::set<kv::SegmentId> mounted;                 // by a mount timeline: may be there
};

// Reads all records of the user. REQUIRES: the user's gate held exclusively. Errors: DataLoss,
// Unavailable.
base::StatusOr<SegmentReferences> ReadReferences(const store::Store& store,
                                                 const store::UserKey& user);

// Puts a sweep of the user's unnamed segments into `batch` and the queue, due after `wait_us`,
// unless one is due before that. REQUIRES: the user's gate held until the batch is committed.
void PutSweep(Core& core, const UserState& user, int64_t wait_us, store::Batch& batch);
// How long what a commit left for mounts waits for its sweep, so that many share one.
inline constexpr int64_t kSweepWaitUs = int64_t{60} * 1000000;

}  // namespace kvasir::service
