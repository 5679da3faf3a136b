// Reading a stored segment chunk by chunk, verified against the record that names it. Internal.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/service/core.h"

namespace kvasir::service {

// Errors: DeadlineExceeded reason LOAD_TIMEOUT (monotonic `deadline_us`), DataLoss reason
// STATE_CORRUPT (also when it is absent), FailedPrecondition reason MODEL_MISMATCH, Unavailable.
base::StatusOr<std::shared_ptr<const kv::KvSegment>> ReadPart(const Core& core,
                                                              const store::UserKey& user,
                                                              const StatePart& part,
                                                              int64_t deadline_us);

}  // namespace kvasir::service
