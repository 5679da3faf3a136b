// What the AVX2 and AVX-512 paths share: unpacking of a panel's next blocks into level-1 cache,
// storing of results. Included by one file per path, which compiles it with its own flags: all is
// internal to that file.
#pragma once

#include "engine/kernels/cpu/linear/intrinsics.h"
#include "engine/kernels/cpu/linear/kernels.h"

#define KVASIR_INLINE static inline __attribute__((always_inline))
#define KVASIR_MEMBER_INLINE inline __attribute__((always_inline))

namespace kvasir::kernels::linear {
namespace {

// Blocks of a panel that are unpacked at once: 512 k, 8 KiB of integers.
constexpr int kChunkBlocks = 16;

// Unpacked blocks of a panel. `w` is [block][8][64 bytes] as in layout.h: unsigned integers, for
// Q8_0 as SubScale says.
struct Chunk {
  const uint8_t* w;
  alignas(64) float scale[kChunkBlocks][kPanel];  // d (super-blocks: [super-block])
  alignas(64) float min[kChunkBlocks][kPanel];    // m, or the integer minimum
  alignas(64) float super_min[kChunkBlocks / kSuperBlocks][kPanel];  // dmin
  alignas(64) uint32_t sub_scale[kChunkBlocks][2][kPanel];           // of each 16 k, see SubScale
  alignas(64) uint8_t buffer[kChunkBlocks * 512];
};

// How a path multiplies: by pairs of 16-bit integers (sub_scale holds (c, c); Q8_0 stays signed),
// or by floats (sub_scale holds a float; Q8_0 becomes unsigned, + 128).
enum class SubScale { kInt16Pairs, kFloat };

KVASIR_INLINE __m256i Load256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
KVASIR_INLINE void Store256(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}

// 16 half floats to floats.
KVASIR_INLINE void HalvesToFloats(const uint8_t* halves, float* out) {
  const __m128i* in = reinterpret_cast<const __m128i*>(halves);
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(in)));
  _mm256_storeu_ps(out + 8, _mm256_cvtph_ps(_mm_loadu_si128(in + 1)));
}

// 16 bytes of integers to floats.
KVASIR_INLINE void BytesToFloats(__m128i bytes, float* out) {
  _mm256_storeu_ps(out, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
  _mm256_storeu_ps(out + 8, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))));
}

// 16 signed bytes to sub-scales.
template <SubScale kSub>
KVASIR_INLINE void StoreSubScales(__m128i bytes, uint32_t* out) {
  if constexpr (kSub == SubScale::kFloat) {
    BytesToFloats(bytes, reinterpret_cast<float*>(out));
  } else {
    const __m256i mask = _mm256_set1_epi32(0xffff);
    for (int i = 0; i < 2; ++i) {
      const __m256i v = _mm256_cvtepi8_epi32(bytes);
      Store256(out + 8 * i, _mm256_or_si256(_mm256_and_si256(v, mask), _mm256_slli_epi32(v, 16)));
      bytes = _mm_srli_si128(bytes, 8);
    }
  }
}

// Bits `from` … of each byte moved to 4 …, masked.
KVASIR_INLINE __m256i BitsToFour(__m256i v, int from, __m256i mask) {
  const __m256i shifted =
      from < 4 ? _mm256_slli_epi16(v, 4 - from) : _mm256_srli_epi16(v, from - 4);
  return _mm256_and_si256(shifted, mask);
}

// Vectors i and i + 4 (i < 4) of a block, columns 8 and up for h = 32.
template <Format F>
KVASIR_INLINE void UnpackPair(const uint8_t* quants, int i, int h, __m256i& low, __m256i& high) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i v = Load256(quants + 64 * i + h);
  low = _mm256_and_si256(v, nibble);
  high = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);
  if constexpr (HasFifthBit(F)) {
    const __m256i mask = _mm256_set1_epi8(16);
    const __m256i bits = Load256(quants + 256 + h);
    low = _mm256_or_si256(low, BitsToFour(bits, i, mask));
    high = _mm256_or_si256(high, BitsToFour(bits, i + 4, mask));
  } else if constexpr (F == Format::kQ6_K) {
    const __m256i mask = _mm256_set1_epi8(48);
    low = _mm256_or_si256(low, BitsToFour(Load256(quants + 256 + h), 2 * i, mask));
    high = _mm256_or_si256(high, BitsToFour(Load256(quants + 320 + h), 2 * i, mask));
  }
}

// The 8 vectors of one block.
template <Format F>
KVASIR_INLINE void UnpackIntegers(const uint8_t* quants, uint8_t* w) {
#pragma GCC unroll 2
  for (int h = 0; h < 64; h += 32) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      __m256i low, high;
      UnpackPair<F>(quants, i, h, low, high);
      Store256(w + 64 * i + h, low);
      Store256(w + 64 * (i + 4) + h, high);
    }
  }
}

// The scales of super-block s of the chunk.
template <Format F, SubScale kSub>
KVASIR_INLINE void UnpackSuperScales(const uint8_t* scales, int s, Chunk& chunk) {
  HalvesToFloats(scales, chunk.scale[s]);
  const __m128i* bytes = reinterpret_cast<const __m128i*>(scales + 32);
  if constexpr (F == Format::kQ6_K) {
    for (int j = 0; j < 2 * kSuperBlocks; ++j) {
      StoreSubScales<kSub>(_mm_loadu_si128(bytes + j),
                           chunk.sub_scale[s * kSuperBlocks + j / 2][j % 2]);
    }
    return;
  }
  HalvesToFloats(scales + 32, chunk.super_min[s]);
  const __m128i nibble = _mm_set1_epi8(15), two_bits = _mm_set1_epi8(3), top = _mm_set1_epi8(48);
  for (int j = 0; j < kSuperBlocks; ++j) {
    const __m128i low = _mm_loadu_si128(bytes + 2 + j);
    __m128i high = _mm_loadu_si128(bytes + 10 + j / 2);
    if (j % 2 != 0) high = _mm_srli_epi16(high, 4);
    const __m128i scale =
        _mm_or_si128(_mm_and_si128(low, nibble), _mm_slli_epi16(_mm_and_si128(high, two_bits), 4));
    const __m128i min = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(low, 4), nibble),
                                     _mm_and_si128(_mm_slli_epi16(high, 2), top));
    const int b = s * kSuperBlocks + j;
    StoreSubScales<kSub>(scale, chunk.sub_scale[b][0]);
    BytesToFloats(min, chunk.min[b]);
  }
}

// Unpacks the integers of `blocks` ≤ kChunkBlocks blocks.
template <Format F, SubScale kSub>
KVASIR_INLINE void UnpackAllIntegers(const uint8_t* quants, int blocks, Chunk& chunk) {
  chunk.w = chunk.buffer;
  if constexpr (F != Format::kQ8_0) {
    for (int b = 0; b < blocks; ++b) {
      UnpackIntegers<F>(quants + b * QuantBytes(F), chunk.buffer + b * 512);
    }
  } else if constexpr (kSub == SubScale::kFloat) {
    const __m256i offset = _mm256_set1_epi8(-128);
    for (int i = 0; i < blocks * 512; i += 32) {
      Store256(chunk.buffer + i, _mm256_xor_si256(Load256(quants + i), offset));
    }
  } else {
    chunk.w = quants;
  }
}

// Unpacks the scales of `blocks` ≤ kChunkBlocks blocks (whole super-blocks).
template <Format F, SubScale kSub>
KVASIR_INLINE void UnpackScales(const uint8_t* scales, int blocks, Chunk& chunk) {
  if constexpr (HasSuperBlocks(F)) {
    for (int s = 0; s < blocks / kSuperBlocks; ++s) {
      UnpackSuperScales<F, kSub>(scales + s * ScaleBytes(F), s, chunk);
    }
  } else {
    for (int b = 0; b < blocks; ++b) {
      HalvesToFloats(scales + b * ScaleBytes(F), chunk.scale[b]);
      if constexpr (HasMinimum(F)) HalvesToFloats(scales + b * ScaleBytes(F) + 32, chunk.min[b]);
    }
  }
}

// Eight weights of a float panel.
template <Format F>
KVASIR_INLINE __m256 LoadWeights(const uint8_t* panel, int64_t index) {
  if constexpr (F == Format::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(panel) + index);
  } else {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + 2 * index));
    if constexpr (F == Format::kF16) return _mm256_cvtph_ps(v);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
  }
}

// acc [rows][16] to the panel's output columns first_column ….
KVASIR_INLINE void StorePanel(const PanelProduct& p, int64_t first_column, const float* acc) {
  const float* bias = p.bias == nullptr ? nullptr : p.bias + first_column;
  const int64_t columns = p.columns - first_column;
  for (int r = 0; r < p.rows; ++r, acc += kPanel) {
    float* out = p.out + r * p.out_stride + first_column;
    if (columns < kPanel) {
      for (int64_t c = 0; c < columns; ++c) {
        float v = acc[c];
        if (bias != nullptr) v += bias[c];
        if (p.add) v += out[c];
        out[c] = v;
      }
      continue;
    }
    for (int c = 0; c < kPanel; c += 8) {
      __m256 v = _mm256_loadu_ps(acc + c);
      if (bias != nullptr) v = _mm256_add_ps(v, _mm256_loadu_ps(bias + c));
      if (p.add) v = _mm256_add_ps(v, _mm256_loadu_ps(out + c));
      _mm256_storeu_ps(out + c, v);
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::linear
