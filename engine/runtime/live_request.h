// LiveRequest: a request between Submit and OnFinish. Internal to engine/runtime.
//
// Its context is everything its tail must hold: what the tail held at Submit, the prompt, and the
// output tokens. What the tail lacks of it is what is left to run: a long part while it prefills,
// one token while it decodes, all of it after its pages were given up.
// Threads: the engine's, but for `cancelled`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/runtime/reply_text.h"
#include "engine/runtime/request.h"

namespace kvasir::runtime {

struct LiveRequest {
  LiveRequest(RequestId request_id, GenerateRequest request, ReplyText reply_text)
      : id(request_id), in(std::move(request)), text(std::move(reply_text)) {}

  const RequestId id;
  GenerateRequest in;
  ReplyText text;
  std::atomic<bool> cancelled = false;

  std::vector<int32_t> context;
  int64_t tokens_at_submit = 0;  // of the tail
  int64_t submit_us = 0;
  int64_t admit_us = -1;         // first admission; −1: not yet
  int64_t first_output_us = -1;  // −1: not yet
  int64_t output_tokens = 0;

  int64_t kept_tokens = 0;  // of tokens_at_submit, those whose pages were never given up
  int64_t rows_run = 0;
  int64_t tail_tokens_max = 0;     // most that the tail held
  int64_t computed_tokens = 0;     // fixed at the first output token
  int64_t rows_before_output = 0;  // rows_run then
  int64_t rerun_after_output = 0;  // rows run again since then

  bool chat() const { return in.priority == Priority::kChat; }
  // Whether `other` gives way to this one.
  bool OutRanks(const LiveRequest& other) const {
    if (chat() != other.chat()) return chat();
    return id < other.id;
  }

  // The tail grew from `before` to `after` tokens by rows of this request.
  void CountRows(int64_t before, int64_t after) {
    rows_run += after - before;
    if (first_output_us >= 0) {
      rerun_after_output += std::max<int64_t>(0, std::min(after, tail_tokens_max) - before);
    }
    tail_tokens_max = std::max(tail_tokens_max, after);
  }
  // The pages of the tail were given up.
  void CountDrop() { kept_tokens = 0; }
  // Tokens computed so far, each once.
  int64_t ComputedTokens() const {
    return std::min(rows_run, std::max<int64_t>(0, tail_tokens_max - kept_tokens));
  }
};

}  // namespace kvasir::runtime
