#include "router/server/handlers/turn_messages.h"

#include "router/server/chat_turns.h"
#include "router/server/handlers/to_proto.h"

namespace kvasir::server {
namespace {

std::string TextSoFar(const TurnLog& log) {
  std::string text;
  const int64_t size = log.size();
  for (int64_t seq = 1; seq <= size; ++seq) {
    const TurnEvent event = log.Get(seq);
    if (const auto* delta = std::get_if<DeltaEvent>(&event)) text += delta->text;
  }
  return text;
}

}  // namespace

v1::Turn TurnMessage(const Served& served, const service::UserRef& user, const std::string& session,
                     service::TurnRecord turn) {
  RouteInfo route;
  // A deleted turn has neither; one whose record is damaged shows without.
  if (auto kept = RouteFromJson(turn.route_json); kept.ok()) route = *std::move(kept);
  FillTitles(*served.tier, user, route);
  if (turn.state == service::TurnRecord::State::kRunning) {
    const auto live = served.turns->Running(user, session, turn.number);
    if (live != nullptr) turn.reply_text = TextSoFar(live->log);
  }
  v1::Turn message = ToProto(user.user, session, turn, route);
  if (const auto sampling = SamplingFromJson(turn.sampling_json); sampling.ok()) {
    message.set_seed(static_cast<int32_t>(sampling->sampling.seed));
  }
  return message;
}

}  // namespace kvasir::server
