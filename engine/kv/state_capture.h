// StateCapture: what a model asks of a state when questions about it are put: the queries of every
// layer, the keys they meet, and how much of each query's attention lies where. The input of
// compaction (Attention Matching, Zweiger et al., arXiv 2602.16284, section 3, with reference
// queries made from cues).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::kv {

inline constexpr size_t kCaptureCuesMax = 65536;
inline constexpr size_t kCaptureBytesMax = size_t{4} << 30;

// A question and the beginning of its answer, which is given, not generated.
struct CueText {
  std::string question;
  std::string answer;
};

struct LayerCapture {
  std::vector<std::vector<float>> keys;  // per KV head [slots, k_width] after RoPE
  std::vector<float> queries;            // [rows, q_heads, k_width] after RoPE
  std::vector<float> log_sum_exp;        // [rows, q_heads] over base, state and the cue so far
};

// One row per token of the cues. Positions are those of the state right behind the base (frame 0).
struct StateCapture {
  int64_t rows = 0;
  int64_t slots = 0;  // of the state
  int32_t q_heads = 0;
  double scale = 0;                    // of the logits
  std::vector<int64_t> cue_first_row;  // of each cue
  std::vector<LayerCapture> layers;
};

}  // namespace kvasir::kv
