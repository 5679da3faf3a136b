// What a request must fulfil, and how it gets into the queue.
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

base::Status Invalid(const char* field, base::Status status) {
  return base::WithField(base::WithReason(std::move(status), "INVALID_FIELD"), field);
}

// Rows that a request adds to the tail: the last sampled token is not run.
int64_t RowsAtMost(const GenerateRequest& request) {
  return static_cast<int64_t>(request.prompt.size()) +
         std::max<int64_t>(0, request.max_output_tokens - 1);
}

}  // namespace

Engine::State::State(const Dependencies& dependencies, const Options& engine_options)
    : deps(dependencies),
      options(engine_options),
      pool(std::make_shared<model::PagePool>(
          dependencies.model->backend(), dependencies.model->layout(), engine_options.kv_bytes)),
      logits(static_cast<size_t>(engine_options.requests_running_max *
                                 dependencies.model->config().n_vocab)) {}

base::Status Engine::State::CheckRequest(const GenerateRequest& request) const {
  if (request.sequence == nullptr || request.sink == nullptr) {
    return base::InvalidArgument("a request needs a sequence and a sink");
  }
  if (request.prompt.empty()) {
    return Invalid("prompt", base::InvalidArgument("prompt is empty, one token is needed"));
  }
  for (const int32_t id : request.prompt) {
    if (!deps.tokenizer->IsValid(id) || id >= deps.model->config().n_vocab) {
      return Invalid("prompt", base::InvalidArgument("prompt has token {}, the vocabulary {}", id,
                                                     deps.model->config().n_vocab));
    }
  }
  if (request.max_output_tokens < 0 || request.max_output_tokens > options.output_tokens_max) {
    return Invalid("max_output_tokens",
                   base::InvalidArgument("max_output_tokens is {}, 0 to {} are allowed",
                                         request.max_output_tokens, options.output_tokens_max));
  }
  if (request.fairness_key.size() > options.fairness_key_bytes_max) {
    return Invalid(
        "fairness_key",
        base::InvalidArgument("fairness_key has {} bytes, at most {} are allowed",
                              request.fairness_key.size(), options.fairness_key_bytes_max));
  }
  return CheckSamplingParams(request.sampling);
}

// REQUIRES: the sequence is claimed, so that nobody else changes it.
base::Status Engine::State::CheckFits(const GenerateRequest& request) const {
  const Sequence& sequence = *request.sequence;
  const int64_t end = sequence.end() + RowsAtMost(request);
  const int64_t positions_max = deps.model->options().positions_max;
  if (end > positions_max) {
    return base::WithReason(
        base::InvalidArgument("{} tokens of context, {} of prompt and {} of output make {}, the "
                              "context holds {}",
                              sequence.end(), request.prompt.size(), request.max_output_tokens, end,
                              positions_max),
        "CONTEXT_LENGTH_EXCEEDED");
  }
  size_t bytes = sequence.MountBytes();
  const model::Tail empty(*pool, sequence.first_position_);
  bytes += static_cast<size_t>(empty.PagesNeeded(end)) * pool->page_bytes(model::PageKind::kTail);
  if (bytes > pool->bytes_max()) {
    return base::ResourceExhausted("the request needs {} bytes of KV pages, there are {}", bytes,
                                   pool->bytes_max());
  }
  return base::OkStatus();
}

base::StatusOr<RequestId> Engine::State::Enqueue(GenerateRequest request, StopMatcher stops) {
  const std::lock_guard lock(mutex);
  if (draining) return base::Unavailable("the engine takes no more requests");
  if (queued >= options.requests_queued_max) {
    return base::ResourceExhausted("{} requests are queued, at most {} may be", queued,
                                   options.requests_queued_max);
  }
  int64_t& of_key = queued_of_key[request.fairness_key];
  if (of_key >= options.requests_queued_key_max) {
    return base::ResourceExhausted("{} requests of this user are queued, at most {} may be", of_key,
                                   options.requests_queued_key_max);
  }
  auto live_request = std::make_shared<LiveRequest>(next_id++, std::move(request),
                                                    ReplyText(deps.tokenizer, std::move(stops)));
  LiveRequest& r = *live_request;
  r.context = r.in.sequence->tokens_;
  r.tokens_at_submit = r.kept_tokens = r.tail_tokens_max = static_cast<int64_t>(r.context.size());
  r.context.insert(r.context.end(), r.in.prompt.begin(), r.in.prompt.end());
  r.submit_us = deps.clock->MonotonicMicros();
  ++of_key;
  ++queued;
  live[r.id] = live_request;
  submitted.push_back(live_request);
  if (r.chat()) work_waits = true;
  wake.notify_one();
  return r.id;
}

void Engine::State::Post(Operation operation) {
  base::Status refused;
  {
    const std::lock_guard lock(mutex);
    if (draining) {
      refused = base::Unavailable("the engine takes no more work");
    } else if (static_cast<int64_t>(operations.size()) >= options.operations_max) {
      refused = base::ResourceExhausted("{} operations are pending, at most {} may be",
                                        operations.size(), options.operations_max);
    } else {
      operations.push_back(operation);
      work_waits = true;
      wake.notify_one();
    }
  }
  if (!refused.ok()) operation.fail(refused);
}

void Engine::State::Register(const std::shared_ptr<Sequence>& sequence) {
  const std::lock_guard lock(sequences_mutex);
  if (sequences.size() >= purge_at) {
    std::erase_if(sequences, [](const auto& weak) { return weak.expired(); });
    purge_at = 2 * sequences.size() + 64;
  }
  sequences.push_back(sequence);
}

std::vector<std::shared_ptr<Sequence>> Engine::State::Sequences() {
  std::vector<std::shared_ptr<Sequence>> alive;
  const std::lock_guard lock(sequences_mutex);
  for (const auto& weak : sequences) {
    if (auto sequence = weak.lock()) alive.push_back(std::move(sequence));
  }
  return alive;
}

}  // namespace kvasir::runtime
