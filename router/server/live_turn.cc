#include "router/server/live_turn.h"

#include <utility>

#include "router/server/metrics.h"

namespace kvasir::server {

LiveTurn::LiveTurn(ChatCall wanted, int64_t accepted_us, const base::Clock* clock, Metrics* metrics)
    : call(std::move(wanted)), accept_us(accepted_us), clock_(clock), metrics_(metrics) {}

int64_t LiveTurn::number() const {
  const std::lock_guard lock(mutex_);
  return number_;
}

void LiveTurn::SetNumber(int64_t number) {
  const std::lock_guard lock(mutex_);
  number_ = number;
}

base::Status LiveTurn::Submit(runtime::Engine& engine, runtime::GenerateRequest request) {
  request.sink = shared_from_this();
  KVASIR_ASSIGN_OR_RETURN(const runtime::RequestId id, engine.Submit(std::move(request)));
  const std::lock_guard lock(mutex_);
  engine_ = &engine;
  request_ = id;
  if (cancelled_) engine.Cancel(id);
  return base::OkStatus();
}

void LiveTurn::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (request_) engine_->Cancel(*request_);
}

bool LiveTurn::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void LiveTurn::ReaderCame() {
  const std::lock_guard lock(mutex_);
  ++readers_;
  forgotten_at_us_ = 0;
}

void LiveTurn::ReaderLeft(int64_t now_us, int64_t grace_us) {
  {
    const std::lock_guard lock(mutex_);
    if (--readers_ > 0) return;
    forgotten_at_us_ = now_us + (call.request_id.empty() ? 0 : grace_us);
  }
  CancelIfForgotten(now_us);
}

void LiveTurn::CancelIfForgotten(int64_t now_us) {
  {
    const std::lock_guard lock(mutex_);
    if (forgotten_at_us_ == 0 || now_us < forgotten_at_us_) return;
  }
  if (!log.ended()) Cancel();
}

void LiveTurn::OnEnd(std::function<void()> ended) {
  {
    const std::lock_guard lock(mutex_);
    if (!log.ended()) {
      waiting_for_end_.push_back(std::move(ended));
      return;
    }
  }
  ended();
}

void LiveTurn::End(base::Status status) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_for_end_);
    // Under the lock, so that OnEnd sees either the end or its place in the list. Readers that are
    // told may call this turn again: they are told without it.
    log.Close(std::move(status));
  }
  log.TellReaders();
  for (const auto& ended : waiting) ended();
}

base::Status LiveTurn::OnToken(const runtime::OutputToken& token) {
  const int64_t now = clock_->MonotonicMicros();
  if (last_token_us_ != 0 && metrics_ != nullptr) {
    metrics_->RecordInterTokenLatency(static_cast<double>(now - last_token_us_) * 1e-6);
  }
  last_token_us_ = now;
  record.reply_ids.push_back(token.id);
  record.reply_text += token.text;
  DeltaEvent delta{.text = token.text, .token = token.id, .logprob = std::nullopt};
  if (call.logprobs) {
    record.reply_logprobs.push_back(token.logprob);
    delta.logprob = token.logprob;
  }
  log.Append(std::move(delta));
  return base::OkStatus();
}

void LiveTurn::OnFinish(const runtime::Finish& finish) {
  // It holds the turn; after this call nobody asks for it again.
  const auto finished = std::exchange(on_finish, nullptr);
  finished(finish);
}

}  // namespace kvasir::server
