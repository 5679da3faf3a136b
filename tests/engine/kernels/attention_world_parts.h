// What the two halves of AttentionWorld share: building and running it, and its reference.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/engine/kernels/attention_world.h"
#include "tests/engine/kernels/elements.h"

namespace kvasir::kernels::testing {

inline constexpr int kLayer = 1;  // layer 0 is there so that offsets matter

inline std::vector<LayerStreams> Streams(const WorldSpec& spec) {
  return {{.kv_heads = 2, .k_width = 24, .v_width = 40},
          {.kv_heads = spec.kv_heads, .k_width = spec.k_width, .v_width = spec.v_width}};
}

// Streams of pseudo-random numbers: eight kinds of 64 heads per sequence or mount.
enum Kind { kQueries, kKeys, kValues, kBeta, kMask };
inline uint64_t Stream(uint64_t base, Kind kind, int head) { return (base * 8 + kind) * 64 + head; }

inline std::vector<float> RowOf(uint64_t stream, int64_t position, int width, float size) {
  std::vector<float> row(width);
  for (int i = 0; i < width; ++i) row[i] = ValueAt(stream, position, i, size);
  return row;
}

// [lines, v_width + 1]: each line's output and behind it its log-sum-exp.
inline std::vector<float> Interleaved(const std::vector<float>& outputs,
                                      const std::vector<float>& log_sum_exp) {
  const size_t lines = log_sum_exp.size(), width = outputs.size() / lines;
  std::vector<float> both;
  for (size_t line = 0; line < lines; ++line) {
    both.insert(both.end(), outputs.begin() + line * width, outputs.begin() + (line + 1) * width);
    both.push_back(log_sum_exp[line]);
  }
  return both;
}

struct AttentionWorld::Sequence {
  SequenceSpec spec;
  uint64_t base = 0;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::byte*> tail_pages;
  // One entry per span, all made before spans point into them.
  std::vector<std::vector<const std::byte*>> pages;
  std::vector<std::vector<uint64_t>> visible;
  std::vector<std::vector<SparseHead>> heads;
  std::vector<std::vector<float>> betas;
  std::vector<Span> spans;
};

}  // namespace kvasir::kernels::testing
