// Integer sums of one block on the AVX2 path.
//
// Products of unsigned weights and signed activations are summed in 16 bits over a block:
// vpmaddubsw saturates, but 2 · 63 · 127 and 2 · 128 · 127 fit, and the additions may wrap because
// the final sum, started at −offset · Σ q, fits: at most 16 · 127 · 16 (Q5_0), 8 · 127 · 32 (Q6_K,
// per 16 k), 16 · 127 · 15 (Q4). Types with 5 bits and no offset are summed per 16 k: 8 · 127 · 31
// fits.
#pragma once

#include "engine/kernels/cpu/linear/panel_avx2.h"

namespace kvasir::kernels::linear {
namespace {

// Where a tile finds its weights: unpacked in level-1 cache, which pays when several tiles use
// them, or as they lie in memory.
enum class Weights { kUnpacked, kPacked };

constexpr bool SumsPerHalf(Format f) {
  return f == Format::kQ5_1 || f == Format::kQ5_K || f == Format::kQ6_K;
}

// The activations of a panel's rows and their sums in progress.
struct Rows {
  const int8_t* q;
  int64_t q_stride;
  const QuantizedBlock* blocks;
  int64_t block_stride;
  float* acc;  // [rows][16]
};

// A pointer to the current block of each of R rows. Kept in registers: GCC would otherwise derive
// each address anew.
template <int R>
struct Cursor {
  const int8_t* q[R];
  const QuantizedBlock* block[R];

  KVASIR_MEMBER_INLINE explicit Cursor(const Rows& rows) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      q[r] = rows.q + r * rows.q_stride;
      block[r] = rows.blocks + r * rows.block_stride;
    }
  }
  KVASIR_MEMBER_INLINE void Pin() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) asm("" : "+r"(q[r]), "+r"(block[r]));
  }
  KVASIR_MEMBER_INLINE void Next() {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      q[r] += kBlock;
      ++block[r];
    }
  }
};

KVASIR_INLINE __m256i Broadcast32(const void* p) {
  int v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}

// 16-bit sums over `kGroups` vectors of weights, for R rows × 16 columns.
template <int R, int kGroups>
KVASIR_INLINE void AddProducts(const uint8_t* w, const Cursor<R>& at, int first_k,
                               __m256i (&sum)[R][2]) {
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
    const __m256i w0 = Load256(w + 64 * g);
    const __m256i w1 = Load256(w + 64 * g + 32);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i x = Broadcast32(at.q[r] + first_k + 4 * g);
      sum[r][0] = _mm256_add_epi16(sum[r][0], _mm256_maddubs_epi16(w0, x));
      sum[r][1] = _mm256_add_epi16(sum[r][1], _mm256_maddubs_epi16(w1, x));
    }
  }
}

// What 16-bit sums start at: −offset · Σ q over part `part` of the block (QuantizedBlock).
template <Format F>
KVASIR_INLINE __m256i StartSum(const QuantizedBlock* block, int part) {
  if constexpr (OffsetLog2(F) == 0) return _mm256_setzero_si256();
  return _mm256_slli_epi16(Broadcast32(block->negative_pairs[part]), OffsetLog2(F));
}

template <Format F, int R>
KVASIR_INLINE void StartSums(const Cursor<R>& at, int part, __m256i (&sum)[R][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = StartSum<F>(at.block[r], part);
}

// Signed weights: |w| times q with w's sign.
template <int R>
KVASIR_INLINE void SignedSums(const uint8_t* w, const Cursor<R>& at, __m256i (&sum)[R][2]) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256i v = Load256(w + 64 * g + 32 * h);
      const __m256i magnitude = _mm256_abs_epi8(v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = _mm256_sign_epi8(Broadcast32(at.q[r] + 4 * g), v);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
}

// The integer scales of block b, half `half`, columns 8h …; ones for types without.
template <Format F>
KVASIR_INLINE __m256i IntegerScales(const Chunk& chunk, int b, int half, int h) {
  if constexpr (!HasSuperBlocks(F)) return _mm256_set1_epi16(1);
  return Load256(chunk.sub_scale[b][F == Format::kQ6_K ? half : 0] + 8 * h);
}

// Σ w q of unpacked weights, times the integer scales.
template <Format F, int R>
KVASIR_INLINE void UnpackedSums(const Chunk& chunk, const Cursor<R>& at, int b,
                                __m256i (&sum)[R][2]) {
  const uint8_t* w = chunk.w + b * 512;
  if constexpr (!SumsPerHalf(F)) {
    StartSums<F, R>(at, 2, sum);
    AddProducts<R, 8>(w, at, 0, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        sum[r][h] = _mm256_madd_epi16(sum[r][h], IntegerScales<F>(chunk, b, 0, h));
      }
    }
  } else {
    __m256i first[R][2];
    StartSums<F, R>(at, 0, first);
    AddProducts<R, 4>(w, at, 0, first);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        first[r][h] = _mm256_madd_epi16(first[r][h], IntegerScales<F>(chunk, b, 0, h));
      }
    }
    StartSums<F, R>(at, 1, sum);
    AddProducts<R, 4>(w + 256, at, 16, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const __m256i second = _mm256_madd_epi16(sum[r][h], IntegerScales<F>(chunk, b, 1, h));
        sum[r][h] = _mm256_add_epi32(first[r][h], second);
      }
    }
  }
}

// The same of packed weights, unpacked in registers.
template <Format F, int R>
KVASIR_INLINE void PackedSums(const Chunk& chunk, const Cursor<R>& at, int b,
                              __m256i (&sum)[R][2]) {
  const uint8_t* w = chunk.w + b * QuantBytes(F);
  constexpr int kParts = SumsPerHalf(F) ? 2 : 1;
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    __m256i part[R][kParts];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kParts; ++i) part[r][i] = StartSum<F>(at.block[r], kParts == 2 ? i : 2);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __m256i low, high;
      UnpackPair<F>(w, i, 32 * h, low, high);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x0 = Broadcast32(at.q[r] + 4 * i);
        const __m256i x1 = Broadcast32(at.q[r] + 4 * i + 16);
        part[r][0] = _mm256_add_epi16(part[r][0], _mm256_maddubs_epi16(low, x0));
        __m256i& high_sum = part[r][kParts - 1];
        high_sum = _mm256_add_epi16(high_sum, _mm256_maddubs_epi16(high, x1));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r][h] = _mm256_madd_epi16(part[r][0], IntegerScales<F>(chunk, b, 0, h));
      if constexpr (kParts == 2) {
        const __m256i second = _mm256_madd_epi16(part[r][1], IntegerScales<F>(chunk, b, 1, h));
        sum[r][h] = _mm256_add_epi32(sum[r][h], second);
      }
    }
  }
}

// The exact integer of block b: Σ w q, times the integer scales where the type has them.
template <Format F, Weights kWeights, int R>
KVASIR_INLINE void BlockIntegers(const Chunk& chunk, const Cursor<R>& at, int b,
                                 __m256i (&sum)[R][2]) {
  if constexpr (F == Format::kQ8_0) {
    SignedSums<R>(chunk.w + b * 512, at, sum);
  } else if constexpr (kWeights == Weights::kPacked) {
    PackedSums<F, R>(chunk, at, b, sum);
  } else {
    UnpackedSums<F, R>(chunk, at, b, sum);
  }
}

}  // namespace
}  // namespace kvasir::kernels::linear
