#include "router/server/replay.h"

#include <utility>

#include "engine/runtime/reply_text.h"
#include "router/server/chat_call.h"

namespace kvasir::server {

base::StatusOr<std::vector<TurnEvent>> ReplayEvents(const tokenizer::Tokenizer& tokenizer,
                                                    const service::TurnRecord& turn) {
  using State = service::TurnRecord::State;
  if (turn.state == State::kDeleted) {
    return base::NotFound("the content of turn {} was removed", turn.number);
  }
  KVASIR_ASSIGN_OR_RETURN(const SamplingRecord sampling, SamplingFromJson(turn.sampling_json));
  KVASIR_ASSIGN_OR_RETURN(RouteInfo route, RouteFromJson(turn.route_json));
  KVASIR_ASSIGN_OR_RETURN(runtime::StopMatcher stops, runtime::StopMatcher::Create(sampling.stop));
  std::vector<TurnEvent> events;
  events.push_back(std::move(route));
  // What was held back came with the last token, unless the reply was broken off.
  const bool whole = turn.finish_reason == "STOP" || turn.finish_reason == "LENGTH" ||
                     turn.finish_reason == "CONTEXT_LENGTH";
  runtime::ReplyText text(&tokenizer, std::move(stops));
  for (size_t i = 0; i < turn.reply_ids.size() && !text.stopped(); ++i) {
    DeltaEvent delta{
        .text = text.Push(turn.reply_ids[i]), .token = turn.reply_ids[i], .logprob = std::nullopt};
    if (whole && i + 1 == turn.reply_ids.size()) delta.text += text.Flush();
    if (i < turn.reply_logprobs.size()) delta.logprob = turn.reply_logprobs[i];
    events.push_back(std::move(delta));
  }
  events.push_back(turn.usage);
  events.push_back(FinishEvent{turn.finish_reason.empty() ? "INTERRUPTED" : turn.finish_reason});
  return events;
}

}  // namespace kvasir::server
