// Rounding of activations, shared by the AVX2 and AVX-512 paths (see panel_avx2.h for how).
#pragma once

#include "engine/kernels/cpu/linear/panel_avx2.h"

namespace kvasir::kernels::linear {
namespace {

// The largest of the bits of |x| as integers: infinities and NaN are above all numbers.
KVASIR_INLINE uint32_t MagnitudeMax(const __m256 x[4]) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  __m256i v = _mm256_and_si256(_mm256_castps_si256(x[0]), mask);
  for (int i = 1; i < 4; ++i) {
    v = _mm256_max_epi32(v, _mm256_and_si256(_mm256_castps_si256(x[i]), mask));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

// The low 32 bits: a pair of 16-bit sums over the 8 pairs-of-neighbours sums.
KVASIR_INLINE __m128i SumPairs(__m128i v) {
  v = _mm_add_epi16(v, _mm_srli_si128(v, 8));
  return _mm_add_epi16(v, _mm_srli_si128(v, 4));
}

KVASIR_INLINE void StorePairs(__m128i pairs, int16_t* out) {
  const int bits = _mm_cvtsi128_si32(_mm_sub_epi16(_mm_setzero_si128(), pairs));
  __builtin_memcpy(out, &bits, sizeof bits);
}

KVASIR_INLINE void QuantizeBlock(const float* in, int8_t* q, QuantizedBlock& block) {
  __m256 x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm256_loadu_ps(in + 8 * i);
  const uint32_t amax_bits = MagnitudeMax(x);
  float amax;
  __builtin_memcpy(&amax, &amax_bits, sizeof amax);
  if (amax_bits >= 0x7f800000 || amax < 0x1p-100f) {
    Store256(q, _mm256_setzero_si256());
    block = QuantizedBlock{};
    if (amax_bits >= 0x7f800000) block.scale = block.scaled_sum = __builtin_nanf("");
    return;
  }
  const __m256 inverse = _mm256_set1_ps(127.0f / amax);
  __m256i v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
  const __m256i packed =
      _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  const __m256i bytes = _mm256_permutevar8x32_epi32(
      packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));  // packing works within 128 bits
  Store256(q, bytes);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m128i first = SumPairs(_mm256_castsi256_si128(pairs));
  const __m128i second = SumPairs(_mm256_extracti128_si256(pairs, 1));
  const __m128i all = _mm_add_epi16(first, second);
  StorePairs(first, block.negative_pairs[0]);
  StorePairs(second, block.negative_pairs[1]);
  StorePairs(all, block.negative_pairs[2]);
  block.negative_sum = block.negative_pairs[2][0] + block.negative_pairs[2][1];
  block.scale = amax / 127.0f;
  block.scaled_sum = block.scale * static_cast<float>(-block.negative_sum);
}

void QuantizeRow(const float* x, int64_t columns, int8_t* q, QuantizedBlock* blocks) {
  int64_t k = 0;
  for (; k + kBlock <= columns; k += kBlock) QuantizeBlock(x + k, q + k, blocks[k / kBlock]);
  if (k == columns) return;
  float last[kBlock] = {};
  for (int64_t i = k; i < columns; ++i) last[i - k] = x[i];
  QuantizeBlock(last, q + k, blocks[k / kBlock]);
}

}  // namespace
}  // namespace kvasir::kernels::linear
