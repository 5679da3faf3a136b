// Rebuilds: memories whose state another model or another build made are built again from text, in
// the background. Internal.
#pragma once

#include <vector>

#include "memory/service/core.h"
#include "memory/service/memories.h"

namespace kvasir::service {

// At most so many rebuilds of one user wait at a time: later turns queue the next ones.
inline constexpr int64_t kRebuildsQueuedMax = 16;

// Queues durable builds for those of `candidates` that need one, words in common with the message
// first; each memory has at most one, and other work keeps half of the queue. A state of another
// build stays in use until then; one of an open session is left to the end of the session, whose
// checkpoint it is. REQUIRES: gate held shared. Errors: Unavailable.
base::Status QueueRebuilds(Core& core, UserState& user, const std::vector<Candidate>& candidates);

}  // namespace kvasir::service
