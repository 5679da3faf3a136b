// Consistency: compares all records of all users with each other and with the segments. Internal.
#pragma once

#include <vector>

#include "memory/service/core.h"

namespace kvasir::service {

// As MemoryTier::CheckConsistency. Each user is checked with its gate held exclusively, one after
// the other.
base::StatusOr<ConsistencyReport> CheckConsistency(Core& core, Repair repair);

}  // namespace kvasir::service
