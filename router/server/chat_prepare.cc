// The first half of a turn: from an admitted call to a durable turn that the engine runs.
#include <algorithm>
#include <ctime>
#include <utility>

#include "router/server/chat_plan.h"

namespace kvasir::server {
namespace {

using service::MemoryMode;

constexpr int kSubmitAttempts = 3;

std::string DateOf(int64_t wall_us) {
  const std::time_t seconds = wall_us / 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

base::Status TooLong(int64_t tokens, int64_t max) {
  return base::WithReason(
      base::FailedPrecondition("the context has {} tokens with this message, the model takes {}",
                               tokens, max),
      "CONTEXT_LENGTH_EXCEEDED");
}

}  // namespace

base::Status ChatTurns::ReadSession(const TurnPtr& turn, Plan& plan) {
  service::Sessions& sessions = deps_.tier->sessions();
  const ChatCall& call = turn->call;
  KVASIR_ASSIGN_OR_RETURN(plan.session, sessions.Get(call.user, call.session));
  if (plan.session.state == service::SessionRecord::State::kClosed) {
    return base::WithReason(base::FailedPrecondition("session {} is closed", call.session),
                            "SESSION_CLOSED");
  }
  KVASIR_RETURN_IF_ERROR(service::CheckSessionModel(plan.session, deps_.host->engine().model_id()));
  // Nothing that was said in an incognito session may be learned through a turn of another mode.
  const bool incognito = plan.session.mode == MemoryMode::kIncognito;
  plan.mode = incognito ? MemoryMode::kIncognito : call.mode.value_or(plan.session.mode);
  KVASIR_ASSIGN_OR_RETURN(const auto history, sessions.History(call.user, call.session));
  const runtime::Prompt& prompt = deps_.host->prompt();
  plan.layout = MakeLayout(prompt, plan.session.offset, history);
  plan.date = plan.session.date.empty() ? DateOf(deps_.clock->WallMicros()) : plan.session.date;
  plan.first = plan.layout.ids.empty();
  plan.own_prompt = plan.first
                        ? prompt.FirstTurn(plan.date, plan.session.system_prompt, call.message)
                        : prompt.UserTurn(call.message);
  plan.max_output = call.max_output_tokens;
  return base::OkStatus();
}

base::Status ChatTurns::ChooseMounts(const TurnPtr& turn, Plan& plan, SessionState& state) {
  const int64_t own = static_cast<int64_t>(plan.own_prompt.size());
  const MountWish wish{.user = turn->call.user,
                       .session = &plan.session,
                       .message = turn->call.message,
                       .first_turn = plan.first,
                       .turn = plan.session.next_turn,
                       .visible_from = plan.layout.end(),
                       .prompt_tokens = own,
                       .output_tokens = plan.max_output};
  MountOutcome outcome;
  if (Reads(plan.mode)) {
    KVASIR_ASSIGN_OR_RETURN(outcome, mounting_.Mount(wish, state.mounts));
  } else {
    RouteInfo unseen;
    outcome.ready = mounting_.Keep(wish, state.mounts, &unseen);
    // Later turns of a session that reads may mount.
    if (plan.session.offset < 0 && Reads(plan.session.mode)) {
      KVASIR_ASSIGN_OR_RETURN(outcome.had_candidates, mounting_.HasMemories(wish.user));
    }
  }
  plan.route = std::move(outcome.route);
  plan.route.mode = plan.mode;
  plan.added = std::move(outcome.added);
  plan.mounts = plan.session.mounts;
  if (plan.session.offset < 0) {
    int64_t end = deps_.host->base_tokens();
    for (const auto& mount : plan.added) end = std::max(end, mount.begin + mount.tokens);
    plan.layout.offset = end + (outcome.had_candidates ? mounting_.Slack(end) : 0);
    for (auto& mount : plan.added) mount.visible_from = plan.layout.offset;
  }
  plan.mounts.insert(plan.mounts.end(), plan.added.begin(), plan.added.end());
  state.mounts = std::move(outcome.ready);
  if (!deps_.sessions->Attend(*turn, state.mounts)) {
    return base::Aborted("a memory of this turn was deleted while it was prepared");
  }
  return base::OkStatus();
}

// The reply gets what the context leaves.
base::Status ChatTurns::CheckRoom(const TurnPtr& turn, Plan& plan) {
  const int64_t context = deps_.host->engine().context_tokens_max();
  const int64_t end = plan.layout.end() + static_cast<int64_t>(plan.own_prompt.size());
  if (end >= context) return TooLong(end, context);
  // The last token of the reply needs no row of its own.
  plan.max_output = std::min(turn->call.max_output_tokens, context - end + 1);
  return base::OkStatus();
}

base::Status ChatTurns::MakeDurable(const TurnPtr& turn, Plan& plan) {
  const ChatCall& call = turn->call;
  service::TurnStart start;
  start.turn.mode = plan.mode;
  start.turn.user_text = call.message;
  start.turn.prompt_ids = plan.own_prompt;
  start.turn.request_id = call.request_id;
  start.turn.request_digest = call.request_digest;
  start.turn.sampling_json =
      ToJson(SamplingRecord{call.sampling, call.max_output_tokens, call.stop, call.logprobs});
  start.turn.route_json = ToJson(plan.route);
  start.offset = plan.layout.offset;
  start.date = plan.date;
  start.mounts_added = plan.added;
  KVASIR_ASSIGN_OR_RETURN(
      turn->record, deps_.tier->sessions().BeginTurn(call.user, call.session, std::move(start)));
  turn->SetNumber(turn->record.number);
  for (const auto& mount : plan.added) deps_.tier->memories().RecordUse(call.user, mount.memory);
  if (deps_.metrics == nullptr) return base::OkStatus();
  for (const MountedInfo& mount : plan.route.mounts) {
    deps_.metrics->RecordHit(mount.tier == MountedInfo::Tier::kDisk ? "disk" : "ram",
                             mount.restore_ms * 1e-3);
  }
  for (const UnusedInfo& one : plan.route.unused) {
    deps_.metrics->RecordMiss(policy::UnmountedName(one.reason));
  }
  return base::OkStatus();
}

base::Status ChatTurns::ResumeFor(const TurnPtr& turn, const Plan& plan, SessionState& state) {
  return resume_.Run({.user = turn->call.user,
                      .session = &plan.session,
                      .mounts = &plan.mounts,
                      .layout = &plan.layout,
                      .turn = plan.session.next_turn,
                      .reads = Reads(plan.mode),
                      .has_parts = !plan.layout.turns.empty()},
                     state);
}

base::Status ChatTurns::SubmitOnce(const TurnPtr& turn, Plan& plan, const SessionState& state) {
  plan.tail_tokens = static_cast<int64_t>(state.sequence->tokens().size());
  runtime::GenerateRequest request;
  request.sequence = state.sequence;
  request.prompt.assign(plan.layout.ids.begin() + plan.tail_tokens, plan.layout.ids.end());
  request.prompt.insert(request.prompt.end(), plan.own_prompt.begin(), plan.own_prompt.end());
  plan.run_tokens = static_cast<int64_t>(request.prompt.size());
  request.max_output_tokens = plan.max_output;
  request.sampling = turn->call.sampling;
  request.sampling.logprobs = turn->call.logprobs ? 1 : 0;
  request.stop = turn->call.stop;
  request.fairness_key = service::FairnessKey(turn->call.user);
  plan.submit_us = deps_.clock->MonotonicMicros();
  return turn->Submit(deps_.host->engine(), std::move(request));
}

base::Status ChatTurns::SubmitTo(const TurnPtr& turn, Plan& plan, SessionState& state) {
  plan.memory_tokens = deps_.host->base_tokens();
  for (const MountedInfo& mount : plan.route.mounts) plan.memory_tokens += mount.logical_tokens;
  turn->log.Append(plan.route);
  base::Status submitted = SubmitOnce(turn, plan, state);
  // An idle sequence may be evicted for others before it is submitted.
  for (int i = 1; i < kSubmitAttempts && absl::IsFailedPrecondition(submitted); ++i) {
    KVASIR_RETURN_IF_ERROR(ResumeFor(turn, plan, state));
    submitted = SubmitOnce(turn, plan, state);
  }
  return submitted;
}

base::Status ChatTurns::Begin(const TurnPtr& turn, SessionState& state) {
  const auto plan = std::make_shared<Plan>();
  KVASIR_RETURN_IF_ERROR(ReadSession(turn, *plan));
  KVASIR_RETURN_IF_ERROR(ChooseMounts(turn, *plan, state));
  KVASIR_RETURN_IF_ERROR(CheckRoom(turn, *plan));
  KVASIR_RETURN_IF_ERROR(ResumeFor(turn, *plan, state));
  if (turn->cancelled()) return base::Cancelled("the turn was cancelled before it began");
  KVASIR_RETURN_IF_ERROR(MakeDurable(turn, *plan));
  // From here on the turn is durable: it ends with Finish, whatever happens.
  const auto kept = std::make_shared<SessionState>(std::move(state));
  turn->on_finish = [this, turn, plan, kept](const runtime::Finish& finish) {
    // The engine's thread must not wait for the disk.
    deps_.pool->Post(
        [this, turn, plan, kept, finish] { Finish(turn, finish, plan, std::move(*kept)); });
  };
  const base::Status submitted = SubmitTo(turn, *plan, *kept);
  if (!submitted.ok()) {
    turn->OnFinish({.reason = runtime::FinishReason::kError, .status = submitted});
  }
  return base::OkStatus();
}

void ChatTurns::Prepare(const TurnPtr& turn) {
  deps_.sessions->WhenUserStored(
      turn->call.user, [this, turn] { deps_.pool->Post([this, turn] { PrepareNow(turn); }); });
}

void ChatTurns::PrepareNow(const TurnPtr& turn) {
  base::Status status;
  if (ReplayIfKnown(turn, &status)) {
    if (!status.ok()) turn->End(status);
    ReleaseTo(turn, deps_.sessions->Take(*turn));
    return;
  }
  SessionState state = deps_.sessions->Take(*turn);
  status = Begin(turn, state);
  if (status.ok()) return;
  Fail(turn, status);
  ReleaseTo(turn, std::move(state));
}

}  // namespace kvasir::server
