// Reading turns for the handlers.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "kvasir/v1/turn.pb.h"
#include "memory/service/records.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

// The turn as a message: with the titles of its memories, and, while it runs, what there is of its
// reply.
v1::Turn TurnMessage(const Served& served, const service::UserRef& user, const std::string& session,
                     service::TurnRecord turn);

}  // namespace kvasir::server
