// References: which segments the records of a user name. Internal.
#pragma once

#include <map>
#include <set>
#include <vector>

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

}  // namespace kvasir::service
