// The AVX2 path.
#if defined(__x86_64__)

#include "engine/kernels/cpu/linear/block_avx2.h"
#include "engine/kernels/cpu/linear/floats_avx2.h"
#include "engine/kernels/cpu/linear/quantize_avx2.h"

namespace kvasir::kernels::linear {
namespace {

template <Format F, Weights kWeights, int R>
KVASIR_INLINE void AddBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  Cursor<R> at(rows);
  float* const acc = rows.acc;
  for (int b = 0; b < blocks; ++b, at.Next()) {
    at.Pin();
    __m256i sum[R][2];
    BlockIntegers<F, kWeights, R>(chunk, at, b, sum);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256 scale = _mm256_load_ps(chunk.scale[b] + 8 * h);
      const __m256 min = HasMinimum(F) ? _mm256_load_ps(chunk.min[b] + 8 * h) : scale;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        float* const to = acc + r * kPanel + 8 * h;
        const __m256 product =
            _mm256_mul_ps(_mm256_set1_ps(at.block[r]->scale), _mm256_cvtepi32_ps(sum[r][h]));
        __m256 v = _mm256_fmadd_ps(scale, product, _mm256_load_ps(to));
        if constexpr (HasMinimum(F)) {
          v = _mm256_fmadd_ps(min, _mm256_set1_ps(at.block[r]->scaled_sum), v);
        }
        _mm256_store_ps(to, v);
      }
    }
  }
}

// −dmin · Σ minima · sums of the activations, for super-block s.
template <int R>
KVASIR_INLINE void AddMinima(const Chunk& chunk, int s, const Rows& rows) {
  __m256 u[R][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) u[r][0] = u[r][1] = _mm256_setzero_ps();
  for (int b = s * kSuperBlocks; b < (s + 1) * kSuperBlocks; ++b) {
    const __m256 min0 = _mm256_load_ps(chunk.min[b]);
    const __m256 min1 = _mm256_load_ps(chunk.min[b] + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 sum = _mm256_set1_ps(rows.blocks[r * rows.block_stride + b].scaled_sum);
      u[r][0] = _mm256_fmadd_ps(sum, min0, u[r][0]);
      u[r][1] = _mm256_fmadd_ps(sum, min1, u[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      float* acc = rows.acc + r * kPanel + 8 * h;
      _mm256_store_ps(acc, _mm256_fnmadd_ps(_mm256_load_ps(chunk.super_min[s] + 8 * h), u[r][h],
                                            _mm256_load_ps(acc)));
    }
  }
}

template <Format F, Weights kWeights, int R>
KVASIR_INLINE void AddSuperBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  Cursor<R> at(rows);
  for (int s = 0; s < blocks / kSuperBlocks; ++s) {
    __m256 t[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) t[r][0] = t[r][1] = _mm256_setzero_ps();
    for (int b = s * kSuperBlocks; b < (s + 1) * kSuperBlocks; ++b, at.Next()) {
      at.Pin();
      __m256i sum[R][2];
      BlockIntegers<F, kWeights, R>(chunk, at, b, sum);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_set1_ps(at.block[r]->scale);
        t[r][0] = _mm256_fmadd_ps(x, _mm256_cvtepi32_ps(sum[r][0]), t[r][0]);
        t[r][1] = _mm256_fmadd_ps(x, _mm256_cvtepi32_ps(sum[r][1]), t[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        float* acc = rows.acc + r * kPanel + 8 * h;
        _mm256_store_ps(acc, _mm256_fmadd_ps(_mm256_load_ps(chunk.scale[s] + 8 * h), t[r][h],
                                             _mm256_load_ps(acc)));
      }
    }
    if constexpr (HasMinimum(F)) AddMinima<R>(chunk, s, rows);
  }
}

template <Format F, Weights kWeights, int R>
__attribute__((noinline)) void AddTile(const Chunk& chunk, int blocks, const Rows& rows) {
  if constexpr (HasSuperBlocks(F)) {
    AddSuperBlocks<F, kWeights, R>(chunk, blocks, rows);
  } else {
    AddBlocks<F, kWeights, R>(chunk, blocks, rows);
  }
}

// All rows of one chunk, in tiles of 4 (2 for packed weights).
template <Format F, Weights kWeights>
KVASIR_INLINE void AddTiles(const Chunk& chunk, int blocks, int left, Rows rows) {
  constexpr int kTile = kWeights == Weights::kPacked ? 2 : 4;
  for (; left >= kTile; left -= kTile) {
    AddTile<F, kWeights, kTile>(chunk, blocks, rows);
    rows.q += kTile * rows.q_stride;
    rows.blocks += kTile * rows.block_stride;
    rows.acc += kTile * kPanel;
  }
  if (left == 1) AddTile<F, kWeights, 1>(chunk, blocks, rows);
  if constexpr (kTile > 2) {
    if (left == 2) AddTile<F, kWeights, 2>(chunk, blocks, rows);
    if (left == 3) AddTile<F, kWeights, 3>(chunk, blocks, rows);
  }
}

template <Format F>
void MultiplyIntegers(const PanelProduct& p) {
  constexpr int kPackedRowsMax = 2;  // measured; with more rows, unpacking once is faster
  constexpr int kScaleBlocks = HasSuperBlocks(F) ? kSuperBlocks : 1;
  Chunk chunk;
  alignas(64) float acc[kRowsMax * kPanel];
  const int64_t blocks = p.k / kBlock;
  const uint8_t* quants = p.quants;
  const uint8_t* scales = p.scales;
  for (int64_t column = 0; column < p.columns; column += kPanel) {
    __builtin_memset(acc, 0, sizeof(float) * static_cast<size_t>(p.rows) * kPanel);
    for (int64_t first = 0; first < blocks; first += kChunkBlocks) {
      const int n = static_cast<int>(blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks);
      const uint8_t* packed = quants + first * QuantBytes(F);
      UnpackScales<F, SubScale::kInt16Pairs>(scales + first / kScaleBlocks * ScaleBytes(F), n,
                                             chunk);
      const Rows rows = {p.q + first * kBlock, p.q_stride, p.blocks + first, blocks, acc};
      if (p.rows <= kPackedRowsMax) {
        chunk.w = packed;
        AddTiles<F, Weights::kPacked>(chunk, n, p.rows, rows);
      } else {
        UnpackAllIntegers<F, SubScale::kInt16Pairs>(packed, n, chunk);
        AddTiles<F, Weights::kUnpacked>(chunk, n, p.rows, rows);
      }
    }
    StorePanel(p, column, acc);
    quants += PanelQuantBytes(F, p.k);
    scales += PanelScaleBytes(F, p.k);
  }
}

void Multiply(const PanelProduct& p) {
  switch (p.format) {
    case Format::kF32:
      return MultiplyFloats<Format::kF32>(p);
    case Format::kF16:
      return MultiplyFloats<Format::kF16>(p);
    case Format::kBF16:
      return MultiplyFloats<Format::kBF16>(p);
    case Format::kQ4_0:
      return MultiplyIntegers<Format::kQ4_0>(p);
    case Format::kQ4_1:
      return MultiplyIntegers<Format::kQ4_1>(p);
    case Format::kQ5_0:
      return MultiplyIntegers<Format::kQ5_0>(p);
    case Format::kQ5_1:
      return MultiplyIntegers<Format::kQ5_1>(p);
    case Format::kQ8_0:
      return MultiplyIntegers<Format::kQ8_0>(p);
    case Format::kQ4_K:
      return MultiplyIntegers<Format::kQ4_K>(p);
    case Format::kQ5_K:
      return MultiplyIntegers<Format::kQ5_K>(p);
    case Format::kQ6_K:
      return MultiplyIntegers<Format::kQ6_K>(p);
  }
}

}  // namespace

const Kernels kAvx2Kernels = {QuantizeRow, Multiply};

}  // namespace kvasir::kernels::linear

#endif  // __x86_64__
