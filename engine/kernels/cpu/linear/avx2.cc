// The AVX2 path. Products of unsigned weights and signed activations are summed in 16 bits over a
// block: vpmaddubsw saturates, but 2 · 63 · 127 and 2 · 128 · 127 fit, and the additions may wrap
// because the final sum, started at −offset · Σ q, fits: at most 16 · 127 · 16 (Q5_0), 8 · 127 · 32
// (Q6_K, per 16 k), 16 · 127 · 15 (Q4). Types with 5 bits and no offset are summed per 16 k: 8 ·
// 127 · 31 fits.
#if defined(__x86_64__)

#include "engine/kernels/cpu/linear/panel_avx2.h"
#include "engine/kernels/cpu/linear/quantize_avx2.h"

namespace kvasir::kernels::linear {
namespace {

constexpr bool SumsPerHalf(Format f) {
  return f == Format::kQ5_1 || f == Format::kQ5_K || f == Format::kQ6_K;
}

// The activations of a tile's rows and their sums in progress.
struct Rows {
  const int8_t* q;
  int64_t q_stride;
  const QuantizedBlock* blocks;
  int64_t block_stride;
  float* acc;  // [R][16]
};

KVASIR_INLINE __m256i Broadcast32(const void* p) {
  int v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}

// 16-bit sums over `kGroups` vectors of weights, for R rows × 16 columns.
template <int R, int kGroups>
KVASIR_INLINE void AddProducts(const uint8_t* w, const int8_t* q, int64_t q_stride,
                               __m256i (&sum)[R][2]) {
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
    const __m256i w0 = Load256(w + 64 * g);
    const __m256i w1 = Load256(w + 64 * g + 32);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i x = Broadcast32(q + r * q_stride + 4 * g);
      sum[r][0] = _mm256_add_epi16(sum[r][0], _mm256_maddubs_epi16(w0, x));
      sum[r][1] = _mm256_add_epi16(sum[r][1], _mm256_maddubs_epi16(w1, x));
    }
  }
}

// What 16-bit sums start at: −offset · Σ q over part `part` (QuantizedBlock) of block b.
template <Format F, int R>
KVASIR_INLINE void StartSums(const Rows& rows, int b, int part, __m256i (&sum)[R][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    __m256i start = _mm256_setzero_si256();
    if constexpr (OffsetLog2(F) != 0) {
      start = Broadcast32(rows.blocks[r * rows.block_stride + b].negative_pairs[part]);
      start = _mm256_slli_epi16(start, OffsetLog2(F));
    }
    sum[r][0] = sum[r][1] = start;
  }
}

// Signed weights: |w| times q with w's sign.
template <int R>
KVASIR_INLINE void SignedSums(const uint8_t* w, const int8_t* q, int64_t q_stride,
                              __m256i (&sum)[R][2]) {
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
        const __m256i x = _mm256_sign_epi8(Broadcast32(q + r * q_stride + 4 * g), v);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, x);
        sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
}

// The exact integer of block b: Σ w q, times the integer scales where the type has them.
template <Format F, int R>
KVASIR_INLINE void BlockIntegers(const Chunk& chunk, const Rows& rows, int b,
                                 __m256i (&sum)[R][2]) {
  const uint8_t* w = chunk.w + b * 512;
  const int8_t* q = rows.q + b * kBlock;
  if constexpr (F == Format::kQ8_0) {
    SignedSums<R>(w, q, rows.q_stride, sum);
    return;
  }
  __m256i scale[2] = {_mm256_set1_epi16(1), _mm256_set1_epi16(1)};
  if constexpr (HasSuperBlocks(F)) {
    scale[0] = Load256(chunk.sub_scale[b][0]);
    scale[1] = Load256(chunk.sub_scale[b][0] + 8);
  }
  if constexpr (!SumsPerHalf(F)) {
    StartSums<F, R>(rows, b, 2, sum);
    AddProducts<R, 8>(w, q, rows.q_stride, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < 2; ++h) sum[r][h] = _mm256_madd_epi16(sum[r][h], scale[h]);
    }
  } else {
    __m256i first[R][2];
    StartSums<F, R>(rows, b, 0, first);
    AddProducts<R, 4>(w, q, rows.q_stride, first);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < 2; ++h) first[r][h] = _mm256_madd_epi16(first[r][h], scale[h]);
    }
    if constexpr (F == Format::kQ6_K) {
      scale[0] = Load256(chunk.sub_scale[b][1]);
      scale[1] = Load256(chunk.sub_scale[b][1] + 8);
    }
    StartSums<F, R>(rows, b, 1, sum);
    AddProducts<R, 4>(w + 256, q + 16, rows.q_stride, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int h = 0; h < 2; ++h) {
        sum[r][h] = _mm256_add_epi32(first[r][h], _mm256_madd_epi16(sum[r][h], scale[h]));
      }
    }
  }
}

template <Format F, int R>
KVASIR_INLINE void AddBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  for (int b = 0; b < blocks; ++b) {
    __m256i sum[R][2];
    BlockIntegers<F, R>(chunk, rows, b, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const QuantizedBlock& x = rows.blocks[r * rows.block_stride + b];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        float* acc = rows.acc + r * kPanel + 8 * h;
        const __m256 product =
            _mm256_mul_ps(_mm256_set1_ps(x.scale), _mm256_cvtepi32_ps(sum[r][h]));
        __m256 v =
            _mm256_fmadd_ps(_mm256_load_ps(chunk.scale[b] + 8 * h), product, _mm256_load_ps(acc));
        if constexpr (HasMinimum(F)) {
          v = _mm256_fmadd_ps(_mm256_load_ps(chunk.min[b] + 8 * h), _mm256_set1_ps(x.scaled_sum),
                              v);
        }
        _mm256_store_ps(acc, v);
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

template <Format F, int R>
KVASIR_INLINE void AddSuperBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  for (int s = 0; s < blocks / kSuperBlocks; ++s) {
    __m256 t[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) t[r][0] = t[r][1] = _mm256_setzero_ps();
    for (int b = s * kSuperBlocks; b < (s + 1) * kSuperBlocks; ++b) {
      __m256i sum[R][2];
      BlockIntegers<F, R>(chunk, rows, b, sum);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_set1_ps(rows.blocks[r * rows.block_stride + b].scale);
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

template <Format F, int R>
__attribute__((noinline)) void AddTile(const Chunk& chunk, int blocks, const Rows& rows) {
  if constexpr (HasSuperBlocks(F)) {
    AddSuperBlocks<F, R>(chunk, blocks, rows);
  } else {
    AddBlocks<F, R>(chunk, blocks, rows);
  }
}

template <Format F>
void MultiplyIntegers(const PanelProduct& p) {
  constexpr int kTile = 4;
  Chunk chunk;
  alignas(64) float acc[kRowsMax * kPanel];
  const int64_t blocks = p.k / kBlock;
  const uint8_t* quants = p.quants;
  const uint8_t* scales = p.scales;
  constexpr int kScaleBlocks = HasSuperBlocks(F) ? kSuperBlocks : 1;
  for (int64_t column = 0; column < p.columns; column += kPanel) {
    __builtin_memset(acc, 0, sizeof(float) * static_cast<size_t>(p.rows) * kPanel);
    for (int64_t first = 0; first < blocks; first += kChunkBlocks) {
      const int n = static_cast<int>(blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks);
      Unpack<F, SubScale::kInt16Pairs>(quants + first * QuantBytes(F),
                                       scales + first / kScaleBlocks * ScaleBytes(F), n, chunk);
      Rows rows = {p.q + first * kBlock, p.q_stride, p.blocks + first, blocks, acc};
      int r = 0;
      for (; r + kTile <= p.rows; r += kTile) {
        AddTile<F, kTile>(chunk, n, rows);
        rows.q += kTile * p.q_stride;
        rows.blocks += kTile * blocks;
        rows.acc += kTile * kPanel;
      }
      if (p.rows - r == 1) AddTile<F, 1>(chunk, n, rows);
      if (p.rows - r == 2) AddTile<F, 2>(chunk, n, rows);
      if (p.rows - r == 3) AddTile<F, 3>(chunk, n, rows);
    }
    StorePanel(p, column, acc);
    quants += PanelQuantBytes(F, p.k);
    scales += PanelScaleBytes(F, p.k);
  }
}

// R rows × P neighbouring panels of floats from row `row` and column `column`.
template <Format F, int R, int P>
KVASIR_INLINE void MultiplyFloatTile(const PanelProduct& p, const uint8_t* panel, int row,
                                     float* acc) {
  const int64_t panel_bytes = PanelQuantBytes(F, p.k);
  const float* x = p.x + row * p.x_stride;
  __m256 sum[R][P][2];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) sum[r][i][0] = sum[r][i][1] = _mm256_setzero_ps();
  }
  for (int64_t k = 0; k < p.k; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      const __m256 w0 = LoadWeights<F>(panel + i * panel_bytes, k * kPanel);
      const __m256 w1 = LoadWeights<F>(panel + i * panel_bytes, k * kPanel + 8);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 v = _mm256_set1_ps(x[r * p.x_stride + k]);
        sum[r][i][0] = _mm256_fmadd_ps(w0, v, sum[r][i][0]);
        sum[r][i][1] = _mm256_fmadd_ps(w1, v, sum[r][i][1]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float* to = acc + (i * kRowsMax + row + r) * kPanel;
      _mm256_store_ps(to, sum[r][i][0]);
      _mm256_store_ps(to + 8, sum[r][i][1]);
    }
  }
}

// All rows × P panels.
template <Format F, int P>
KVASIR_INLINE void MultiplyFloatPanels(const PanelProduct& p, int64_t column, const uint8_t* panel,
                                       float* acc) {
  int r = 0;
  if constexpr (P == 1) {
    for (; r + 4 <= p.rows; r += 4) MultiplyFloatTile<F, 4, P>(p, panel, r, acc);
  }
  for (; r < p.rows; ++r) MultiplyFloatTile<F, 1, P>(p, panel, r, acc);
  for (int i = 0; i < P; ++i) StorePanel(p, column + i * kPanel, acc + i * kRowsMax * kPanel);
}

template <Format F>
void MultiplyFloats(const PanelProduct& p) {
  constexpr int kPanels = 4;  // together where rows are few, to have enough independent sums
  alignas(64) float acc[kPanels * kRowsMax * kPanel];
  const uint8_t* panel = p.quants;
  int64_t column = 0;
  if (p.rows < 4) {
    for (; column + kPanels * kPanel <= p.columns; column += kPanels * kPanel) {
      MultiplyFloatPanels<F, kPanels>(p, column, panel, acc);
      panel += kPanels * PanelQuantBytes(F, p.k);
    }
  }
  for (; column < p.columns; column += kPanel) {
    MultiplyFloatPanels<F, 1>(p, column, panel, acc);
    panel += PanelQuantBytes(F, p.k);
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
