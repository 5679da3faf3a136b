// RopeTable: sines and cosines of rotary position embedding, one table per RoPE kind, computed in
// double and rounded to float once, so that a key is rotated by the same numbers wherever it is
// rotated.
//
// Rotation of a pair (a, b) at position m, pair index i:  a' = fma(a, cos, −(b·sin)),  b' = fma(a,
// sin, b·cos), angle = m · scale · base^(−2i/rotated) / factor[i]. Threads: immutable. Source: Su
// et al., "RoFormer", arXiv 2104.09864, section 3.4.2; NTK-by-parts factors as stored in
// `rope_freqs.weight`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::kernels {

struct RopeOptions {
  int rotated = 0;           // leading elements of a head that are rotated; even
  bool interleaved = false;  // pairs (2i, 2i+1) when true, else (i, i + rotated/2)
  double base = 10000.0;
  double scale = 1.0;               // positions are multiplied by it (linear scaling: 1/factor)
  std::vector<float> factors = {};  // [rotated/2], each frequency is divided by it; empty: ones
  int64_t positions_max = 0;        // table covers positions [0, positions_max)
};

class RopeTable {
 public:
  explicit RopeTable(const RopeOptions& options);

  int rotated() const { return options_.rotated; }
  bool interleaved() const { return options_.interleaved; }
  int64_t positions_max() const { return options_.positions_max; }
  // [rotated/2] of position m. REQUIRES: 0 ≤ m < positions_max.
  const float* cos(int64_t m) const { return cos_.data() + m * (options_.rotated / 2); }
  const float* sin(int64_t m) const { return sin_.data() + m * (options_.rotated / 2); }

  // out [width] = head [width] rotated at position m; elements past rotated() are copied. In place
  // is allowed.
  void Rotate(const float* head, int width, int64_t m, float* out) const;

 private:
  RopeOptions options_;
  std::vector<float> cos_, sin_;
};

}  // namespace kvasir::kernels
