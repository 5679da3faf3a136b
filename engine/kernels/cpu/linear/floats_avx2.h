// Float panels on the AVX2 path.
#pragma once

#include "engine/kernels/cpu/linear/panel_avx2.h"

namespace kvasir::kernels::linear {
namespace {

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

}  // namespace
}  // namespace kvasir::kernels::linear
