// Building the state of a memory from text. Internal.
#pragma once

#include <atomic>

#include "memory/service/core.h"
#include "memory/store/batch.h"

namespace kvasir::service {

// Builds the state of the session's memory from its turns unless it is complete, and stores it; a
// session that has no memory yet gets one. Blocks on the StateBuilder without a lock.
// Errors: those of StateBuilder::Build; NotFound (session gone, or nothing to learn from), Aborted
// (its turns changed meanwhile; nothing was written), ResourceExhausted reason
// MEMORY_QUOTA_EXCEEDED, DataLoss, Unavailable.
base::StatusOr<MemoryRecord> BuildMemory(Core& core, const UserRef& user,
                                         const store::RecordId& session, kv::BuildUrgency urgency,
                                         const std::atomic<bool>& cancelled);

// Puts into `batch` what stays of an incognito session's or turn's turns. REQUIRES: gate held
// shared and the session's lock. Errors: DataLoss, Unavailable.
base::Status ForgetIncognitoTurns(const Core& core, const store::UserKey& user,
                                  const SessionRecord& session, store::Batch& batch);

}  // namespace kvasir::service
