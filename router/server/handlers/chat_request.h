// From a ChatRequest to a ChatCall.
#pragma once

#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "kvasir/v1/chat.pb.h"
#include "router/server/chat_call.h"

namespace kvasir::server {

// Checks the request, fills in defaults and draws a seed where none is given.
// Errors: InvalidArgument reason INVALID_FIELD.
base::StatusOr<ChatCall> ToCall(const v1::ChatRequest& request, base::Entropy& entropy);

}  // namespace kvasir::server
