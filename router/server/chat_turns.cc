#include "router/server/chat_turns.h"

#include <algorithm>
#include <utility>

#include "router/server/chat_plan.h"
#include "router/server/replay.h"

namespace kvasir::server {
namespace {

base::Status Busy(const ChatCall& call) {
  return base::WithReason(base::Aborted("another turn of session {} is running", call.session),
                          "SESSION_BUSY");
}

double Ms(int64_t us) { return static_cast<double>(us) * 1e-3; }

std::string ReasonOf(const runtime::Finish& finish, int64_t output_max, int64_t wanted) {
  if (finish.reason == runtime::FinishReason::kDeadline) return "CANCELLED";
  const bool cut = finish.reason == runtime::FinishReason::kLength && output_max < wanted;
  return cut ? "CONTEXT_LENGTH" : std::string(Name(finish.reason));
}

}  // namespace

ChatTurns::ChatTurns(const Dependencies& dependencies)
    : deps_(dependencies),
      mounting_(*deps_.options, *deps_.host, *deps_.tier, deps_.clock),
      resume_(*deps_.host, *deps_.tier),
      settle_(*deps_.host, *deps_.tier) {}

base::StatusOr<std::shared_ptr<LiveTurn>> ChatTurns::Start(ChatCall call) {
  if (draining_) {
    return base::WithReason(base::Unavailable("the server is stopping"), "SERVER_DRAINING");
  }
  const auto turn = std::make_shared<LiveTurn>(std::move(call), deps_.clock->MonotonicMicros(),
                                               deps_.clock, deps_.metrics);
  KVASIR_ASSIGN_OR_RETURN(const LiveSessions::Admitted admitted, deps_.sessions->Admit(turn));
  switch (admitted.admission) {
    case LiveSessions::Admission::kJoined:
      return admitted.other;
    case LiveSessions::Admission::kBusy:
      // The request may be one that ended before.
      if (turn->call.request_id.empty()) return Busy(turn->call);
      if (!deps_.pool->Offer([this, turn] { Replay(turn, Busy(turn->call)); })) {
        return Busy(turn->call);
      }
      return turn;
    case LiveSessions::Admission::kHolds:
      deps_.pool->Post([this, turn] { Prepare(turn); });  // bounded by LiveSessions
      return turn;
    case LiveSessions::Admission::kWaits:
      return turn;
  }
  return base::Internal("no such admission");
}

base::StatusOr<std::vector<TurnEvent>> ChatTurns::EventsOf(
    const ChatCall& call, const service::TurnRecord& record) const {
  KVASIR_ASSIGN_OR_RETURN(const service::SessionRecord session,
                          deps_.tier->sessions().Get(call.user, call.session));
  KVASIR_RETURN_IF_ERROR(service::CheckSessionModel(session, deps_.host->engine().model_id()));
  return ReplayEvents(*deps_.host->loaded().tokenizer, record);
}

bool ChatTurns::ReplayIfKnown(const TurnPtr& turn, base::Status* failure) {
  const ChatCall& call = turn->call;
  if (call.request_id.empty()) return false;
  const auto found = deps_.tier->sessions().FindRequest(call.user, call.session, call.request_id);
  *failure = found.status();
  if (!found.ok()) return true;
  if (!*found) return false;
  const service::TurnRecord& record = **found;
  if (record.state == service::TurnRecord::State::kRunning) {
    *failure = Busy(call);  // its end could not be written
    return true;
  }
  if (record.request_digest != call.request_digest) {
    *failure = base::WithField(
        base::WithReason(
            base::AlreadyExists("request_id {} stands for another request", call.request_id),
            "REQUEST_ID_REUSED"),
        "request_id");
    return true;
  }
  auto events = EventsOf(call, record);
  *failure = events.status();
  if (!events.ok()) return true;
  turn->SetNumber(record.number);
  FillTitles(*deps_.tier, call.user, std::get<RouteInfo>(events->front()));
  for (TurnEvent& event : *events) turn->log.Append(std::move(event));
  turn->End(base::OkStatus());
  return true;
}

void ChatTurns::Replay(const TurnPtr& turn, base::Status otherwise) {
  base::Status failure = std::move(otherwise);
  base::Status known;
  if (ReplayIfKnown(turn, &known)) failure = known;
  turn->End(failure);  // nothing happens when it has ended well
}

void ChatTurns::Fail(const TurnPtr& turn, const base::Status& status) { turn->End(status); }

void ChatTurns::Finish(const TurnPtr& turn, const runtime::Finish& finish,
                       const std::shared_ptr<Plan>& plan, SessionState state) {
  service::TurnRecord& record = turn->record;
  service::TurnUsage& usage = record.usage;
  usage.computed_tokens = finish.computed_tokens;
  usage.session_cached_tokens =
      std::min(plan->tail_tokens, plan->tail_tokens + plan->run_tokens - finish.computed_tokens);
  usage.memory_tokens = plan->memory_tokens;
  usage.memory_slots = plan->route.slots();
  usage.output_tokens = finish.output_tokens;
  const int64_t before = plan->submit_us - turn->accept_us;
  usage.queue_ms = Ms(finish.queue_us);
  usage.restore_ms = plan->route.restore_ms;
  usage.ttft_ms = finish.output_tokens > 0 ? Ms(before + finish.ttft_us) : 0;
  usage.decode_ms = Ms(finish.decode_us);
  const bool failed = finish.reason == runtime::FinishReason::kError;
  record.state = failed ? service::TurnRecord::State::kFailed : service::TurnRecord::State::kDone;
  record.finish_reason = ReasonOf(finish, plan->max_output, turn->call.max_output_tokens);
  const base::Status stored = deps_.tier->sessions().FinishTurn(turn->call.user, record);
  Count(usage, plan->route.logical_tokens());
  deps_.sessions->EndReply(*turn);
  const bool nothing = failed && finish.output_tokens == 0;
  if (stored.ok() && !nothing) {
    turn->log.Append(usage);
    turn->log.Append(FinishEvent{record.finish_reason});
  }
  turn->End(stored.ok() && nothing ? finish.status : stored);
  SettleAndRelease(turn, stored.ok() && !failed, std::move(state));
}

void ChatTurns::SettleAndRelease(const TurnPtr& turn, bool ended_well, SessionState state) {
  const ChatCall& call = turn->call;
  if (!ended_well) state = {};  // the tail holds what is in no turn
  if (ended_well) {
    service::Sessions& sessions = deps_.tier->sessions();
    const auto session = sessions.Get(call.user, call.session);
    const auto history = sessions.History(call.user, call.session);
    if (session.ok() && history.ok()) {
      const bool save = !session->incognito && session->mode != service::MemoryMode::kIncognito;
      const SessionLayout layout = MakeLayout(deps_.host->prompt(), session->offset, *history);
      const base::Status settled = settle_.Run(call.user, call.session, layout, save, state);
      if (absl::IsAborted(settled)) state = {};  // something it used was deleted
    } else {
      state = {};
    }
  }
  ReleaseTo(turn, std::move(state));
}

void ChatTurns::ReleaseTo(const TurnPtr& turn, SessionState state) {
  const TurnPtr next = deps_.sessions->Release(*turn, std::move(state));
  if (next != nullptr) deps_.pool->Post([this, next] { Prepare(next); });
}

void ChatTurns::Count(const service::TurnUsage& usage, int64_t mounted_tokens) {
  ++totals_.finished_turns;
  totals_.computed_tokens += usage.computed_tokens;
  totals_.session_cached_tokens += usage.session_cached_tokens;
  totals_.memory_tokens += mounted_tokens;
  totals_.output_tokens += usage.output_tokens;
  if (deps_.metrics == nullptr) return;
  deps_.metrics->RecordTurn({.computed_tokens = usage.computed_tokens,
                             .session_cached_tokens = usage.session_cached_tokens,
                             .memory_tokens = mounted_tokens,
                             .output_tokens = usage.output_tokens,
                             .ttft_s = usage.ttft_ms * 1e-3});
}

std::shared_ptr<LiveTurn> ChatTurns::Running(const service::UserRef& user,
                                             const std::string& session, int64_t number) const {
  const auto turn = deps_.sessions->Running(user, session);
  return turn != nullptr && turn->number() == number ? turn : nullptr;
}

base::StatusOr<RouteInfo> ChatTurns::Explain(const service::UserRef& user,
                                             const std::string& session,
                                             const std::string& message) {
  KVASIR_ASSIGN_OR_RETURN(const service::SessionRecord record,
                          deps_.tier->sessions().Get(user, session));
  RouteInfo route;
  if (Reads(record.mode)) {
    KVASIR_ASSIGN_OR_RETURN(route,
                            mounting_.Explain({.user = user,
                                               .session = &record,
                                               .message = message,
                                               .first_turn = record.next_turn == 1,
                                               .turn = record.next_turn,
                                               .prompt_tokens = static_cast<int64_t>(
                                                   deps_.host->prompt().UserTurn(message).size()),
                                               .output_tokens = ChatCall().max_output_tokens}));
  }
  route.mode = record.mode;
  return route;
}

void ChatTurns::Tick() {
  const int64_t now = deps_.clock->MonotonicMicros();
  for (const auto& turn : deps_.sessions->AllTurns()) turn->CancelIfForgotten(now);
}

void ChatTurns::CancelAll() {
  for (const auto& turn : deps_.sessions->AllTurns()) turn->Cancel();
}

}  // namespace kvasir::server
