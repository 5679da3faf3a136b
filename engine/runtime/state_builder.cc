#include "engine/runtime/state_builder.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <optional>
#include <utility>

#include "engine/runtime/capture_rows.h"

namespace kvasir::runtime {
namespace {

// A sequence between two operations is idle and can be evicted; then the build starts again.
constexpr int kAttemptsMax = 3;
constexpr size_t kCuesAtOnce = 8;
constexpr auto kCancelPoll = std::chrono::milliseconds(20);

// A value that another thread sets once.
template <typename T>
class Promise {
 public:
  void Set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    set_.notify_all();
  }
  // Waits; calls `poll` now and then.
  T Wait(const std::function<void()>& poll) {
    std::unique_lock lock(mutex_);
    while (!value_) {
      if (set_.wait_for(lock, kCancelPoll) == std::cv_status::no_timeout) continue;
      lock.unlock();
      poll();
      lock.lock();
    }
    return *std::move(value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  std::optional<T> value_;
};

class PrefillSink final : public Sink {
 public:
  base::Status OnToken(const OutputToken&) override { return base::OkStatus(); }
  void OnFinish(const Finish& finish) override { done_.Set(finish); }
  Promise<Finish>& done() { return done_; }

 private:
  Promise<Finish> done_;
};

// As the interface promises: what it does not name is Unavailable.
base::Status Outward(const base::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return status;
    default:
      return base::Unavailable("{}", base::ToStd(status.message()));
  }
}

}  // namespace

RuntimeStateBuilder::RuntimeStateBuilder(Engine& engine, const Prompt& prompt)
    : engine_(engine), prompt_(prompt) {}
RuntimeStateBuilder::~RuntimeStateBuilder() = default;

kv::ModelId RuntimeStateBuilder::model_id() const { return engine_.model_id(); }
kv::BuildId RuntimeStateBuilder::build_id() const { return engine_.build_id(); }
int64_t RuntimeStateBuilder::base_tokens() const {
  return static_cast<int64_t>(prompt_.base().size());
}
int64_t RuntimeStateBuilder::context_tokens_max() const { return engine_.context_tokens_max(); }

std::vector<int32_t> RuntimeStateBuilder::Render(const kv::BuilderSession& session,
                                                 std::vector<kv::TurnRange>& turns) const {
  std::vector<int32_t> ids;
  const auto append = [&](const std::vector<int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  if (!session.date.empty()) append(prompt_.DateLine(session.date));
  for (const kv::BuilderTurn& turn : session.turns) {
    const int32_t begin = static_cast<int32_t>(ids.size());
    append(prompt_.UserTurn(turn.user_text));
    append(prompt_.Reply(turn.assistant_tokens.empty() ? prompt_.TextTokens(turn.assistant_text)
                                                       : turn.assistant_tokens));
    turns.push_back({turn.turn, begin, static_cast<int32_t>(ids.size())});
  }
  return ids;
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> RuntimeStateBuilder::Build(
    const kv::BuilderSession& session, const std::atomic<bool>& cancelled) {
  std::vector<kv::TurnRange> turns;
  const std::vector<int32_t> ids = Render(session, turns);
  if (ids.empty()) return base::InvalidArgument("a session without turns has no state");
  const int64_t tokens = base_tokens() + static_cast<int64_t>(ids.size());
  if (tokens > context_tokens_max()) {
    return base::WithReason(
        base::InvalidArgument("the session has {} tokens with its base, the context holds {}",
                              tokens, context_tokens_max()),
        "CONTEXT_LENGTH_EXCEEDED");
  }
  KVASIR_ASSIGN_OR_RETURN(const auto base, Base(cancelled));
  const bool chat = session.urgency == kv::BuildUrgency::kChat;
  const Share share{.priority = chat ? Priority::kChat : Priority::kBackground,
                    .fairness_key = session.fairness_key};
  return BuildBehind({base}, ids, turns, share, cancelled);
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> RuntimeStateBuilder::Base(
    const std::atomic<bool>& cancelled) {
  {
    const std::lock_guard lock(mutex_);
    if (base_ != nullptr) return base_;
  }
  const std::vector<int32_t> ids(prompt_.base().begin(), prompt_.base().end());
  KVASIR_ASSIGN_OR_RETURN(auto base, BuildBehind({}, ids, {}, {}, cancelled));
  const std::lock_guard lock(mutex_);
  if (base_ == nullptr) base_ = std::move(base);  // two at once computed the same
  return base_;
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> RuntimeStateBuilder::BuildBehind(
    const Parts& before, const std::vector<int32_t>& ids, const std::vector<kv::TurnRange>& turns,
    const Share& share, const std::atomic<bool>& cancelled) {
  base::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto built = Attempt(before, ids, turns, share, cancelled);
    if (built.ok()) return built;
    status = built.status();
    if (!absl::IsFailedPrecondition(status) || !base::Reason(status).empty()) break;
  }
  return Outward(status);
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> RuntimeStateBuilder::Attempt(
    const Parts& before, const std::vector<int32_t>& ids, const std::vector<kv::TurnRange>& turns,
    const Share& share, const std::atomic<bool>& cancelled) {
  KVASIR_ASSIGN_OR_RETURN(const auto sequence, engine_.NewSequence(0, {}));
  if (!before.empty()) {
    auto restored = std::make_shared<Promise<base::Status>>();
    engine_.Restore(sequence, before, [restored](base::Status s) { restored->Set(std::move(s)); });
    KVASIR_RETURN_IF_ERROR(restored->Wait([] {}));
  }
  const int64_t begin = sequence->view().end;
  KVASIR_RETURN_IF_ERROR(Prefill(sequence, ids, share, cancelled));
  using Segment = base::StatusOr<std::shared_ptr<const kv::KvSegment>>;
  auto cut = std::make_shared<Promise<Segment>>();
  engine_.Cut(sequence, begin, begin + static_cast<int64_t>(ids.size()), turns,
              [cut](Segment segment) { cut->Set(std::move(segment)); });
  return cut->Wait([] {});
}

base::Status RuntimeStateBuilder::Prefill(const std::shared_ptr<Sequence>& sequence,
                                          std::vector<int32_t> prompt, const Share& share,
                                          const std::atomic<bool>& cancelled) {
  if (cancelled) return base::Cancelled("the build was cancelled");
  const auto sink = std::make_shared<PrefillSink>();
  GenerateRequest request;
  request.sequence = sequence;
  request.prompt = std::move(prompt);
  request.priority = share.priority;
  request.fairness_key = share.fairness_key;
  request.sink = sink;
  KVASIR_ASSIGN_OR_RETURN(const RequestId id, engine_.Submit(std::move(request)));
  const Finish finish = sink->done().Wait([&] {
    if (cancelled) engine_.Cancel(id);
  });
  if (finish.reason == FinishReason::kLength) return base::OkStatus();
  if (!finish.status.ok()) return finish.status;
  return base::Cancelled("the build was cancelled");
}

base::StatusOr<RuntimeStateBuilder::Mountable> RuntimeStateBuilder::MakeMountable(
    const std::shared_ptr<const kv::KvSegment>& segment) {
  auto made = std::make_shared<Promise<base::StatusOr<Mountable>>>();
  engine_.MakeMountable(segment->ContentDigest(), segment,
                        [made](base::StatusOr<Mountable> result) { made->Set(std::move(result)); });
  return made->Wait([] {});
}

base::StatusOr<kv::StateCapture> RuntimeStateBuilder::Capture(
    const std::shared_ptr<const kv::KvSegment>& state, std::span<const kv::CueText> cues,
    const std::atomic<bool>& cancelled) {
  if (cues.empty() || cues.size() > kv::kCaptureCuesMax) {
    return base::InvalidArgument("{} cues, 1 to {} are possible", cues.size(), kv::kCaptureCuesMax);
  }
  if (state->info().model_id != model_id()) {
    return base::WithReason(base::InvalidArgument("the state was made for another model"),
                            "MODEL_MISMATCH");
  }
  if (!state->exact() || state->info().first_position != base_tokens()) {
    return base::InvalidArgument(
        "the state must be exact and begin at {}, behind the base; it begins at {}", base_tokens(),
        state->info().first_position);
  }
  const int64_t begin = base_tokens() + state->logical_tokens();
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int64_t> first_rows;
  int64_t rows = 0;
  for (const kv::CueText& cue : cues) {
    std::vector<int32_t>& ids = tokens.emplace_back(prompt_.UserTurn(cue.question));
    const std::vector<int32_t> answer = prompt_.TextTokens(cue.answer);
    ids.insert(ids.end(), answer.begin(), answer.end());
    first_rows.push_back(rows);
    rows += static_cast<int64_t>(ids.size());
    if (begin + static_cast<int64_t>(ids.size()) > context_tokens_max()) {
      return base::WithReason(
          base::InvalidArgument(
              "cue {} has {} tokens behind a state that ends at {}, the context holds {}",
              tokens.size() - 1, ids.size(), begin, context_tokens_max()),
          "CONTEXT_LENGTH_EXCEEDED");
    }
  }
  const size_t bytes = CaptureBytes(engine_.model(), state->logical_tokens(), rows);
  if (bytes > kv::kCaptureBytesMax) {
    return base::ResourceExhausted("the capture of {} rows takes {} bytes, {} is the most", rows,
                                   bytes, kv::kCaptureBytesMax);
  }
  KVASIR_ASSIGN_OR_RETURN(const auto base, Base(cancelled));
  std::vector<SequenceMount> mounts(2);
  KVASIR_ASSIGN_OR_RETURN(mounts[0].segment, MakeMountable(base));
  KVASIR_ASSIGN_OR_RETURN(mounts[1].segment, MakeMountable(state));
  mounts[1].begin = base_tokens();
  kv::StateCapture capture = MakeCapture(engine_.model(), *state, rows);
  capture.cue_first_row = std::move(first_rows);
  const base::Status status = RunCues(mounts, tokens, cancelled, &capture);
  if (!status.ok()) return Outward(status);
  return capture;
}

base::Status RuntimeStateBuilder::RunCues(const std::vector<SequenceMount>& mounts,
                                          const std::vector<std::vector<int32_t>>& cues,
                                          const std::atomic<bool>& cancelled,
                                          kv::StateCapture* capture) {
  struct Running {
    std::shared_ptr<PrefillSink> sink;
    RequestId id;
  };
  std::deque<Running> running;
  base::Status status;
  // Waits for the oldest. `capture` is written to until each has ended.
  const auto finish_one = [&] {
    const Running oldest = running.front();
    running.pop_front();
    const Finish finish = oldest.sink->done().Wait([&] {
      if (cancelled || !status.ok()) engine_.Cancel(oldest.id);
    });
    if (!status.ok()) return;
    if (finish.reason != FinishReason::kLength) {
      status = finish.status.ok() ? base::Cancelled("the capture was cancelled") : finish.status;
    }
  };
  for (size_t i = 0; i < cues.size() && status.ok(); ++i) {
    if (cancelled) status = base::Cancelled("the capture was cancelled");
    while (running.size() >= kCuesAtOnce) finish_one();
    if (!status.ok()) break;
    const int64_t begin = mounts.back().end();
    const auto sequence = engine_.NewSequence(begin, mounts);
    GenerateRequest request;
    request.prompt = cues[i];
    request.priority = Priority::kBackground;
    request.observer =
        std::make_shared<CaptureRows>(engine_.model(), capture, capture->cue_first_row[i], begin);
    const auto sink = std::make_shared<PrefillSink>();
    request.sink = sink;
    if (sequence.ok()) request.sequence = *sequence;
    const auto id = sequence.ok() ? engine_.Submit(std::move(request)) : sequence.status();
    if (id.ok()) {
      running.push_back({sink, *id});
    } else {
      status = id.status();
    }
  }
  while (!running.empty()) finish_one();
  return status;
}

}  // namespace kvasir::runtime
