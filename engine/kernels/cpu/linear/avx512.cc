// The AVX-512 VNNI path: vpdpbusd sums unsigned weights times signed activations in 32 bits,
// started at −offset · Σ q. Integer scales are applied in float: all products and sums are integers
// below 2^24, so they stay exact.
#if defined(__x86_64__)

#include "engine/kernels/cpu/linear/panel_avx2.h"
#include "engine/kernels/cpu/linear/quantize_avx2.h"

namespace kvasir::kernels::linear {
namespace {

// Q8_0 is unpacked as w + 128 here.
constexpr int StartShift(Format f) { return f == Format::kQ8_0 ? 7 : OffsetLog2(f); }

// The activations of a tile's rows and their sums in progress.
struct Rows {
  const int8_t* q;
  int64_t q_stride;
  const QuantizedBlock* blocks;
  int64_t block_stride;
  float* acc;  // [R][16]
};

KVASIR_INLINE __m512i Broadcast32(const void* p) {
  int v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm512_set1_epi32(v);
}

// 32-bit sums over `kGroups` vectors of weights, for R rows × 16 columns.
template <int R, int kGroups>
KVASIR_INLINE void AddProducts(const uint8_t* w, const int8_t* q, int64_t q_stride,
                               __m512i (&sum)[R]) {
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
    const __m512i v = _mm512_loadu_si512(w + 64 * g);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = _mm512_dpbusd_epi32(sum[r], v, Broadcast32(q + r * q_stride + 4 * g));
    }
  }
}

// Block b's exact integer, as floats: Σ w q, times the integer scales where the type has them.
template <Format F, int R>
KVASIR_INLINE void BlockIntegers(const Chunk& chunk, const Rows& rows, int b, __m512 (&out)[R]) {
  const uint8_t* w = chunk.w + b * 512;
  const int8_t* q = rows.q + b * kBlock;
  __m512i sum[R];
  if constexpr (F == Format::kQ6_K) {
    const __m512i offsets = _mm512_set1_epi16(1 << OffsetLog2(F));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sum[r] = _mm512_dpwssd_epi32(
            _mm512_setzero_si512(),
            Broadcast32(rows.blocks[r * rows.block_stride + b].negative_pairs[half]), offsets);
      }
      AddProducts<R, 4>(w + half * 256, q + half * 16, rows.q_stride, sum);
      const __m512 scale = _mm512_loadu_ps(chunk.sub_scale[b][half]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m512 v = _mm512_cvtepi32_ps(sum[r]);
        out[r] = half == 0 ? _mm512_mul_ps(scale, v) : _mm512_fmadd_ps(scale, v, out[r]);
      }
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = _mm512_setzero_si512();
      if constexpr (StartShift(F) != 0) {
        sum[r] = Broadcast32(&rows.blocks[r * rows.block_stride + b].negative_sum);
        sum[r] = _mm512_slli_epi32(sum[r], StartShift(F));
      }
    }
    AddProducts<R, 8>(w, q, rows.q_stride, sum);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      out[r] = _mm512_cvtepi32_ps(sum[r]);
      if constexpr (HasSuperBlocks(F)) {
        out[r] = _mm512_mul_ps(out[r], _mm512_loadu_ps(chunk.sub_scale[b][0]));
      }
    }
  }
}

template <Format F, int R>
KVASIR_INLINE void AddBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  __m512 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = _mm512_loadu_ps(rows.acc + r * kPanel);
  for (int b = 0; b < blocks; ++b) {
    __m512 sum[R];
    BlockIntegers<F, R>(chunk, rows, b, sum);
    const __m512 scale = _mm512_loadu_ps(chunk.scale[b]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const QuantizedBlock& x = rows.blocks[r * rows.block_stride + b];
      acc[r] = _mm512_fmadd_ps(scale, _mm512_mul_ps(_mm512_set1_ps(x.scale), sum[r]), acc[r]);
      if constexpr (HasMinimum(F)) {
        acc[r] =
            _mm512_fmadd_ps(_mm512_loadu_ps(chunk.min[b]), _mm512_set1_ps(x.scaled_sum), acc[r]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(rows.acc + r * kPanel, acc[r]);
}

template <Format F, int R>
KVASIR_INLINE void AddSuperBlocks(const Chunk& chunk, int blocks, const Rows& rows) {
  for (int s = 0; s < blocks / kSuperBlocks; ++s) {
    __m512 t[R], u[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) t[r] = u[r] = _mm512_setzero_ps();
    for (int b = s * kSuperBlocks; b < (s + 1) * kSuperBlocks; ++b) {
      __m512 sum[R];
      BlockIntegers<F, R>(chunk, rows, b, sum);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const QuantizedBlock& x = rows.blocks[r * rows.block_stride + b];
        t[r] = _mm512_fmadd_ps(_mm512_set1_ps(x.scale), sum[r], t[r]);
        if constexpr (HasMinimum(F)) {
          u[r] = _mm512_fmadd_ps(_mm512_set1_ps(x.scaled_sum), _mm512_loadu_ps(chunk.min[b]), u[r]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512 acc = _mm512_loadu_ps(rows.acc + r * kPanel);
      acc = _mm512_fmadd_ps(_mm512_loadu_ps(chunk.scale[s]), t[r], acc);
      if constexpr (HasMinimum(F)) {
        acc = _mm512_fnmadd_ps(_mm512_loadu_ps(chunk.super_min[s]), u[r], acc);
      }
      _mm512_storeu_ps(rows.acc + r * kPanel, acc);
    }
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

// Tiles of R rows while there are as many; the number of rows left.
template <Format F, int R>
KVASIR_INLINE int AddTiles(const Chunk& chunk, int blocks, int64_t left, Rows& rows) {
  for (; left >= R; left -= R) {
    AddTile<F, R>(chunk, blocks, rows);
    rows.q += R * rows.q_stride;
    rows.blocks += R * rows.block_stride;
    rows.acc += R * kPanel;
  }
  return static_cast<int>(left);
}

template <Format F>
void MultiplyIntegers(const PanelProduct& p) {
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
      UnpackAllIntegers<F, SubScale::kFloat>(quants + first * QuantBytes(F), n, chunk);
      UnpackScales<F, SubScale::kFloat>(scales + first / kScaleBlocks * ScaleBytes(F), n, chunk);
      Rows rows = {p.q + first * kBlock, p.q_stride, p.blocks + first, blocks, acc};
      int left = AddTiles<F, 8>(chunk, n, p.rows, rows);
      left = AddTiles<F, 4>(chunk, n, left, rows);
      left = AddTiles<F, 2>(chunk, n, left, rows);
      AddTiles<F, 1>(chunk, n, left, rows);
    }
    StorePanel(p, column, acc);
    quants += PanelQuantBytes(F, p.k);
    scales += PanelScaleBytes(F, p.k);
  }
}

// R rows × P neighbouring panels of floats from row `row`; acc is [P][kRowsMax][16].
template <Format F, int R, int P>
KVASIR_INLINE void MultiplyFloatTile(const PanelProduct& p, const uint8_t* panel, int row,
                                     float* acc) {
  const int64_t panel_bytes = PanelQuantBytes(F, p.k);
  const float* x = p.x + row * p.x_stride;
  __m512 sum[R][P];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) sum[r][i] = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < p.k; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      const __m512 low =
          _mm512_castps256_ps512(LoadWeights<F>(panel + i * panel_bytes, k * kPanel));
      const __m512 w =
          _mm512_insertf32x8(low, LoadWeights<F>(panel + i * panel_bytes, k * kPanel + 8), 1);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sum[r][i] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * p.x_stride + k]), sum[r][i]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      _mm512_storeu_ps(acc + (i * kRowsMax + row + r) * kPanel, sum[r][i]);
    }
  }
}

// All rows × P panels.
template <Format F, int P>
KVASIR_INLINE void MultiplyFloatPanels(const PanelProduct& p, int64_t column, const uint8_t* panel,
                                       float* acc) {
  int r = 0;
  if constexpr (P == 1) {
    for (; r + 8 <= p.rows; r += 8) MultiplyFloatTile<F, 8, P>(p, panel, r, acc);
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
  if (p.rows < 8) {
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

#ifdef KVASIR_EMULATE_AVX512
extern const Kernels kEmulatedAvx512VnniKernels;
const Kernels kEmulatedAvx512VnniKernels = {QuantizeRow, Multiply};
#else
const Kernels kAvx512VnniKernels = {QuantizeRow, Multiply};
#endif

}  // namespace kvasir::kernels::linear

#endif  // __x86_64__
