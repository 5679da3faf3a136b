// Packed layouts of weights, and the records that kernels read beside them. Plain data only: this
// header is compiled with the flags of every instruction set.
//
// A matrix [N, K] is ceil(N / 16) panels of 16 output columns (missing ones are zero). Memory: the
// integers of all panels, then the scales of all panels. In a panel, blocks of 32 k follow each
// other; a block's integers as unsigned bytes (Q8_0: signed) would be 8 vectors of 64 bytes, vector
// g = k 4g … 4g + 3 of the 16 columns: byte 4 · column + (k mod 4). Stored are (QuantBytes per
// block):
//   low nibbles    4 × 64 bytes: vector i holds vector i in its low nibbles and vector i + 4 in its
//   high ones fifth bits     64 bytes (Q5): bit g of byte p belongs to byte p of vector g bits 4
//   and 5   2 × 64 bytes (Q6_K): bits 2j, 2j + 1 of byte p of the i-th belong to byte p of vector
//   4i + j Q8_0           8 × 64 bytes, as they are
// Scales: per block, f16 d[16] (and f16 m[16]); Q4_K, Q5_K per super-block of 256, f16 d[16], f16
// dmin[16], u8 low[8][16] (bits 0–3 of the scale in the low nibble, of the minimum in the high one,
// of block j), u8 high[4][16] (bits 4–5 of scale and minimum of block 2i in the low nibble, of
// block 2i + 1 in the high one); Q6_K f16 d[16], i8 scales[16][16] (of each 16 k). Float panels:
// [K][16] of f32, f16 or bf16; no scales.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels::linear {

inline constexpr int kPanel = 16;       // output columns of a panel
inline constexpr int kBlock = 32;       // k of a block
inline constexpr int kSuperBlocks = 8;  // blocks of a super-block

enum class Format : int {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

static constexpr bool IsInteger(Format f) { return f >= Format::kQ4_0; }
static constexpr bool HasSuperBlocks(Format f) { return f >= Format::kQ4_K; }
static constexpr bool HasMinimum(Format f) {
  return f == Format::kQ4_1 || f == Format::kQ5_1 || f == Format::kQ4_K || f == Format::kQ5_K;
}
static constexpr bool HasFifthBit(Format f) {
  return f == Format::kQ5_0 || f == Format::kQ5_1 || f == Format::kQ5_K;
}
// The stored unsigned integer is w + 2^OffsetLog2; 0 for none.
static constexpr int OffsetLog2(Format f) {
  return f == Format::kQ4_0 ? 3 : f == Format::kQ5_0 ? 4 : f == Format::kQ6_K ? 5 : 0;
}

// Bytes of the integers of one block of a panel. REQUIRES: IsInteger.
static constexpr int QuantBytes(Format f) {
  return f == Format::kQ8_0 ? 512 : f == Format::kQ6_K ? 384 : HasFifthBit(f) ? 320 : 256;
}
// Bytes of the scales of one block, or of one super-block. REQUIRES: IsInteger.
static constexpr int ScaleBytes(Format f) {
  return f == Format::kQ6_K ? 288 : HasSuperBlocks(f) ? 256 : HasMinimum(f) ? 64 : 32;
}

// Bytes of a panel of `k` columns: its integers (or floats), and its scales.
static constexpr int64_t PanelQuantBytes(Format f, int64_t k) {
  if (!IsInteger(f)) return k * kPanel * (f == Format::kF32 ? 4 : 2);
  return k / kBlock * QuantBytes(f);
}
static constexpr int64_t PanelScaleBytes(Format f, int64_t k) {
  if (!IsInteger(f)) return 0;
  return k / (HasSuperBlocks(f) ? kBlock * kSuperBlocks : kBlock) * ScaleBytes(f);
}

// What is kept of a block of 32 activations q beside its int8 values. Pairs are 16-bit sums as they
// fall out of multiply-adds of neighbours: [0] over k mod 4 in {0, 1}, [1] over {2, 3}.
struct QuantizedBlock {
  float scale;                   // x̂
  float scaled_sum;              // x̂ · Σ q
  int32_t negative_sum;          // −Σ q
  int16_t negative_pairs[3][2];  // −Σ q over k < 16, over k ≥ 16, over all
};

}  // namespace kvasir::kernels::linear
