// Operations: work that goes on after the call that asked for it, as clients see it. Nothing is
// kept for them: an operation's name says which durable record it is about, so it is found, as it
// is now, also after a restart.
//
// Threads: all functions may be called concurrently; they block on the store.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "kvasir/v1/operation.pb.h"
#include "memory/service/memory_tier.h"

namespace kvasir::server {

// The operation of closing `session`, which is closed; done once its memory has a state.
v1::Operation OperationOfClose(service::MemoryTier& tier, const service::UserRef& user,
                               const service::SessionRecord& session);
// The operation of an erasure.
v1::Operation OperationOfErasure(const service::ErasureRecord& erasure);
// The operation `id` as it is now. Errors: NotFound (also when its session was deleted since),
// FailedPrecondition reason ERASURE_IN_PROGRESS, DataLoss, Unavailable.
base::StatusOr<v1::Operation> FindOperation(service::MemoryTier& tier, const std::string& id);

}  // namespace kvasir::server
