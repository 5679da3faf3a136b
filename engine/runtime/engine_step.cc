// One step: work that arrived, requests that end, admission, the batch, its tokens.
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

// Hands each observing request of a step its own rows.
class StepObserver final : public model::ForwardObserver {
 public:
  explicit StepObserver(const model::Config& config)
      : heads_(config.n_head), width_(config.key_length) {}

  // The next `rows` rows of the step; `observer` may be null.
  void Add(QueryObserver* observer, int64_t rows, int64_t first_position) {
    if (observer != nullptr) parts_.push_back({observer, rows_, rows, first_position});
    rows_ += rows;
  }

  bool WantsQueries() const override { return !parts_.empty(); }

  void OnQueries(int layer, const float* queries, const float* log_sum_exp, int64_t) override {
    for (const Part& part : parts_) {
      part.observer->OnQueries(layer, part.first_position, part.rows,
                               queries + part.first_row * heads_ * width_,
                               log_sum_exp + part.first_row * heads_);
    }
  }

 private:
  struct Part {
    QueryObserver* observer;
    int64_t first_row, rows, first_position;
  };
  const int64_t heads_, width_;
  int64_t rows_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

void Engine::State::Loop() {
  for (;;) {
    if (Step()) {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      continue;
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return stopping || !submitted.empty() || !operations.empty(); });
    if (stopping) return;
  }
}

bool Engine::State::Step() {
  const bool took = TakeWork();
  const bool ended = EndOverdue();
  Admit();
  const bool ran = RunBatch();
  TrimIdle();
  return took || ended || ran || !waiting.empty() || !running.empty();
}

bool Engine::State::TakeWork() {
  work_waits = false;
  std::deque<Operation> todo;
  std::vector<LivePtr> fresh;
  {
    const std::lock_guard lock(mutex);
    todo.swap(operations);
    fresh.swap(submitted);
  }
  for (const Operation& operation : todo) operation.run();
  for (const LivePtr& request : fresh) {
    share(*request).Enter(request->in.fairness_key);
    waiting.push_back(request);  // ids ascend
  }
  return !todo.empty() || !fresh.empty();
}

bool Engine::State::EndOverdue() {
  const int64_t now = deps.clock->MonotonicMicros();
  std::vector<LivePtr> all = waiting;
  all.insert(all.end(), running.begin(), running.end());
  bool ended = false;
  for (const LivePtr& request : all) {
    const bool late = request->in.deadline_us != 0 && now >= request->in.deadline_us;
    if (!request->cancelled && !late) continue;
    ended = true;
    Finish(request, request->cancelled ? FinishReason::kCancelled : FinishReason::kDeadline,
           base::OkStatus());
  }
  return ended;
}

void Engine::State::EndAll(FinishReason reason, const base::Status& status) {
  std::vector<LivePtr> fresh;
  {
    const std::lock_guard lock(mutex);
    fresh.swap(submitted);
  }
  for (const LivePtr& request : fresh) {
    share(*request).Enter(request->in.fairness_key);
    waiting.push_back(request);
  }
  while (!running.empty()) Finish(running.back(), reason, status);
  while (!waiting.empty()) Finish(waiting.back(), reason, status);
}

void Engine::State::FailOperations(const base::Status& status) {
  std::deque<Operation> todo;
  {
    const std::lock_guard lock(mutex);
    todo.swap(operations);
  }
  for (const Operation& operation : todo) operation.fail(status);
}

// The rows of the next step; chat requests only, when there are any.
std::vector<BatchItem> Engine::State::PlanBatch() {
  const bool chat = std::any_of(running.begin(), running.end(), [](auto& r) { return r->chat(); });
  std::vector<BatchItem> batch;
  std::vector<PlanItem> items;
  std::vector<int64_t> rows_left;
  for (const LivePtr& request : running) {
    if (request->chat() != chat) continue;
    const Sequence& sequence = *request->in.sequence;
    const int64_t left = static_cast<int64_t>(request->context.size()) - sequence.size();
    KVASIR_CHECK(left >= 1);
    batch.push_back({request, 0, false});
    rows_left.push_back(left);
    // All rows of a step attend to the same mounts.
    items.push_back(
        {.key = &request->in.fairness_key,
         .rows_left = std::min(left, sequence.NextChange(sequence.end()) - sequence.end()),
         .decodes = left == 1 && request->output_tokens > 0});
  }
  PlanLimits limits{options.step_rows_max, options.prefill_chunk};
  if (!chat) {
    limits.chunk_max = std::min(options.background_chunk, options.step_rows_max);
    limits.rows_max = std::max(limits.chunk_max, static_cast<int64_t>(items.size()));
  }
  const FairShare& counters_of_keys = chat ? chat_share : background_share;
  const std::vector<int64_t> rows =
      PlanStep(items, limits, [&](const std::string& key) { return counters_of_keys.served(key); });
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].rows = rows[i];
    batch[i].wants_logits = rows[i] == rows_left[i] && batch[i].request->in.max_output_tokens > 0;
  }
  std::erase_if(batch, [](const BatchItem& item) { return item.rows == 0; });
  return batch;
}

bool Engine::State::RunBatch() {
  std::vector<BatchItem> batch = PlanBatch();
  const auto runs = [&](const LivePtr& request) {
    return std::find(running.begin(), running.end(), request) != running.end();
  };
  for (const BatchItem& item : batch) {  // oldest first: they take from those behind them
    if (!runs(item.request) || Reserve(item.request, item.rows)) continue;
    if (running.size() > 1) {
      DropTail(*item.request);
      MoveToWaiting(item.request);
    } else {
      Finish(item.request, FinishReason::kError,
             base::ResourceExhausted("no page of {} bytes is left for the next token",
                                     pool->bytes_max()));
    }
  }
  std::erase_if(batch, [&](const BatchItem& item) { return !runs(item.request); });
  if (batch.empty()) return false;

  std::vector<model::SequenceStep> steps;
  StepObserver observer(deps.model->config());
  int64_t logits_rows = 0;
  for (const BatchItem& item : batch) {
    Sequence& sequence = *item.request->in.sequence;
    const std::span<const int32_t> context = item.request->context;
    steps.push_back({.tokens = context.subspan(static_cast<size_t>(sequence.size()),
                                               static_cast<size_t>(item.rows)),
                     .tail = sequence.tail_.get(),
                     .mounts = sequence.MountsAt(sequence.end()),
                     .logits_rows = item.wants_logits ? 1 : 0});
    logits_rows += item.wants_logits ? 1 : 0;
    observer.Add(item.request->in.observer.get(), item.rows, sequence.end());
  }
  std::function<bool()> keep_going;
  if (!batch[0].request->chat()) keep_going = [this] { return !work_waits; };
  const size_t n_vocab = static_cast<size_t>(deps.model->config().n_vocab);
  const base::Status status = deps.model->Forward(
      steps, std::span(logits).first(static_cast<size_t>(logits_rows) * n_vocab), keep_going,
      observer.WantsQueries() ? &observer : nullptr);
  if (absl::IsCancelled(status)) {
    const std::lock_guard lock(mutex);
    ++counters.steps_yielded;
    return true;
  }
  if (!status.ok()) {
    for (const BatchItem& item : batch) Finish(item.request, FinishReason::kError, status);
    return true;
  }
  Advance(batch);
  size_t row = 0;
  for (const BatchItem& item : batch) {
    if (item.wants_logits) {
      const auto row_logits = std::span<const float>(logits).subspan(row++ * n_vocab, n_vocab);
      if (!item.request->cancelled) Emit(item.request, row_logits);
    } else if (item.request->in.sequence->size() ==
               static_cast<int64_t>(item.request->context.size())) {
      Finish(item.request, FinishReason::kLength, base::OkStatus());  // prefill only
    }
  }
  return true;
}

void Engine::State::Advance(const std::vector<BatchItem>& batch) {
  int64_t rows = 0;
  for (const BatchItem& item : batch) {
    LiveRequest& request = *item.request;
    Sequence& sequence = *request.in.sequence;
    const int64_t before = sequence.size();
    sequence.AddTokens(std::span<const int32_t>(request.context)
                           .subspan(static_cast<size_t>(before), static_cast<size_t>(item.rows)));
    request.CountRows(before, before + item.rows);
    share(request).Charge(request.in.fairness_key, item.rows);
    rows += item.rows;
  }
  const std::lock_guard lock(mutex);
  ++counters.steps;
  counters.rows += rows;
  counters.rows_last_step = rows;
}

void Engine::State::Emit(const LivePtr& request, std::span<const float> row) {
  LiveRequest& r = *request;
  const int64_t position = r.in.sequence->first_position_ + static_cast<int64_t>(r.context.size());
  const auto sampled = sampler.Sample(row, r.in.sampling, position);
  if (!sampled.ok()) {
    Finish(request, FinishReason::kError, sampled.status());
    return;
  }
  if (r.output_tokens == 0) {
    r.first_output_us = deps.clock->MonotonicMicros();
    r.computed_tokens = r.ComputedTokens();
    r.rows_before_output = r.rows_run;
  }
  ++r.output_tokens;
  r.context.push_back(sampled->id);
  OutputToken token{.id = sampled->id,
                    .position = position,
                    .text = r.text.Push(sampled->id),
                    .logprob = sampled->logprob,
                    .top = sampled->top};
  const bool ends = !r.in.ignore_eos && deps.tokenizer->IsEndOfGeneration(sampled->id);
  std::optional<FinishReason> reason;
  if (ends || r.text.stopped()) {
    reason = FinishReason::kStop;
  } else if (r.output_tokens >= r.in.max_output_tokens) {
    reason = FinishReason::kLength;
  }
  if (reason) token.text += r.text.Flush();
  {
    const std::lock_guard lock(mutex);
    ++counters.output_tokens;
  }
  const base::Status status = r.in.sink->OnToken(token);
  if (!status.ok()) {
    Finish(request, FinishReason::kError, status);
  } else if (reason) {
    Finish(request, *reason, base::OkStatus());
  }
}

// Leaves the tail as Engine::Submit promises.
void Engine::State::SettleSequence(const LiveRequest& request, FinishReason reason) {
  Sequence& sequence = *request.in.sequence;
  const int64_t wanted =
      static_cast<int64_t>(request.context.size()) - (request.output_tokens > 0 ? 1 : 0);
  const bool lost = request.output_tokens > 0 ? sequence.size() < wanted
                                              : sequence.size() < request.tokens_at_submit;
  if (reason == FinishReason::kError || lost) {
    sequence.Evict();
    const std::lock_guard lock(mutex);
    ++counters.evicted_sequences;
    return;
  }
  sequence.Truncate(sequence.first_position_ + std::min(sequence.size(), wanted));
}

void Engine::State::Finish(LivePtr request, FinishReason reason, const base::Status& status) {
  LiveRequest& r = *request;
  KVASIR_CHECK(std::erase(running, request) + std::erase(waiting, request) == 1);
  SettleSequence(r, reason);
  share(r).Leave(r.in.fairness_key);
  const int64_t now = deps.clock->MonotonicMicros();
  const bool had_output = r.output_tokens > 0;
  const int64_t computed = had_output ? r.computed_tokens : r.ComputedTokens();
  const int64_t rows_before = had_output ? r.rows_before_output : r.rows_run;
  const runtime::Finish finish = {
      .reason = reason,
      .status = status,
      .computed_tokens = computed,
      .recomputed_tokens = rows_before - computed + r.rerun_after_output,
      .output_tokens = r.output_tokens,
      .queue_us = (r.admit_us >= 0 ? r.admit_us : now) - r.submit_us,
      .ttft_us = had_output ? r.first_output_us - r.submit_us : 0,
      .decode_us = had_output ? now - r.first_output_us : 0};
  {
    const std::lock_guard lock(mutex);
    live.erase(r.id);
    if (r.admit_us < 0) {
      --queued;
      if (--queued_of_key[r.in.fairness_key] == 0) queued_of_key.erase(r.in.fairness_key);
    }
    idle.notify_all();
  }
  r.in.sequence->Release(NextUse());
  r.in.sink->OnFinish(finish);
}

void Engine::State::TrimIdle() {
  {
    const std::lock_guard lock(sequences_mutex);
    if (static_cast<int64_t>(sequences.size()) <= options.sequences_idle_max) return;
  }
  for (;;) {
    std::shared_ptr<Sequence> oldest;
    uint64_t oldest_use = 0;
    int64_t count = 0;
    for (const auto& sequence : Sequences()) {
      const std::optional<uint64_t> use = sequence->EvictableSince();
      if (!use) continue;
      ++count;
      if (oldest == nullptr || *use < oldest_use) {
        oldest = sequence;
        oldest_use = *use;
      }
    }
    if (count <= options.sequences_idle_max) return;
    if (!oldest->EvictIfIdle()) continue;
    const std::lock_guard lock(mutex);
    ++counters.evicted_sequences;
  }
}

}  // namespace kvasir::runtime
