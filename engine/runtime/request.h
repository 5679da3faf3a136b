// GenerateRequest: one turn to run on a sequence; Sink: who is told what comes out of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/runtime/sampler.h"
#include "engine/runtime/sequence.h"

namespace kvasir::runtime {

using RequestId = uint64_t;

// Background work runs only in steps that have no chat work.
enum class Priority { kChat, kBackground };

enum class FinishReason {
  kStop,       // a stop string, or a token that ends the generation
  kLength,     // max_output_tokens
  kCancelled,  // Cancel, or the engine was shut down
  kDeadline,
  kError,  // Finish::status says what
};
// "STOP", "LENGTH", "CANCELLED", "DEADLINE", "ERROR".
std::string_view Name(FinishReason reason);

struct OutputToken {
  int32_t id = 0;
  int64_t position = 0;  // where it stands or will stand
  // What became certain with this token: valid UTF-8, without stop strings and control tokens;
  // often empty. With the last token: all that was held back.
  std::string text;
  double logprob = 0;                 // when asked for, as the next
  std::span<const TokenLogprob> top;  // valid during the call
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  base::Status status;  // OK unless kError (or kCancelled by Shutdown: Unavailable)
  // Tokens of the tail that were run through the model before the first output token, each counted
  // once: prompt tokens, and older ones whose pages had been given up.
  int64_t computed_tokens = 0;
  // Rows run again because pages were given up while the request ran.
  int64_t recomputed_tokens = 0;
  int64_t output_tokens = 0;
  int64_t queue_us = 0;   // Submit to first admission (or to the end)
  int64_t ttft_us = 0;    // Submit to first output token; 0 when there was none
  int64_t decode_us = 0;  // first output token to the end
};

// Called on the engine's thread: must not block. May call the engine's non-blocking methods.
class Sink {
 public:
  virtual ~Sink() = default;
  // One token. A status that is not OK ends the request with kError and that status.
  virtual base::Status OnToken(const OutputToken& token) = 0;
  // Called exactly once, last; the sequence is idle by then.
  virtual void OnFinish(const Finish& finish) = 0;
};

// Sees the queries of a request's rows: from them compaction learns what a state is asked. Called
// on the engine's thread in the middle of a step; a step that is given up is seen again with the
// same bits, so keep rows by position.
class QueryObserver {
 public:
  virtual ~QueryObserver() = default;
  // Of the tokens at first_position …: queries [rows, q_heads, k_width] before rotation and the
  // log-sum-exp of all that each of them saw [rows, q_heads]. Valid during the call.
  virtual void OnQueries(int layer, int64_t first_position, int64_t rows, const float* queries,
                         const float* log_sum_exp) = 0;
};

struct GenerateRequest {
  std::shared_ptr<Sequence> sequence;
  std::vector<int32_t> prompt;    // appended to the tail; at least one
  int64_t max_output_tokens = 0;  // 0: prefill only (finishes with kLength)
  SamplingParams sampling;
  std::vector<std::string> stop;
  bool ignore_eos = false;   // go on after tokens that end the generation
  std::string fairness_key;  // who shares: usually tenant and user
  int64_t deadline_us = 0;   // on the engine's clock, MonotonicMicros(); 0: none
  Priority priority = Priority::kChat;
  std::shared_ptr<Sink> sink;
  std::shared_ptr<QueryObserver> observer = nullptr;  // may be null
};

}  // namespace kvasir::runtime
