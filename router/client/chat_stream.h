// One turn over SessionService.Chat: events in, the whole reply out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kvasir/v1/chat.pb.h"
#include "router/client/connection.h"
#include "router/client/interrupt.h"

namespace kvasir::client {

struct Reply {
  std::string session;
  std::string turn;
  std::string text;
  v1::FinishReason finish_reason = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage;
  v1::Route route;
};

// Runs the turn and calls `on_text` with each piece of the reply as it comes; `interrupt` may be
// null. A first interrupt cancels the turn on the server (the reply so far is kept and ends with
// FINISH_REASON_CANCELLED), a second one gives up waiting for that.
// Errors: what the server answered; Cancelled (second interrupt); DataLoss (the stream ended
//         without a finish event).
base::StatusOr<Reply> RunTurn(Connection& connection, const v1::ChatRequest& request,
                              const std::function<void(std::string_view)>& on_text,
                              Interrupt* interrupt);

// The object that `chat --once` prints: session, turn, text, finish_reason, usage, route.
std::string ReplyJson(const Reply& reply);

}  // namespace kvasir::client
