// The functions that exist once per instruction set. Plain data only (see layout.h).
#pragma once

#include <cstdint>

#include "engine/kernels/cpu/linear/layout.h"

namespace kvasir::kernels::linear {

// Most rows that one call of a kernel may be given.
inline constexpr int kRowsMax = 128;

// Rows [rows ≤ kRowsMax, K] times neighbouring panels of one matrix. Strides are in elements.
struct PanelProduct {
  Format format;
  int64_t k;              // columns of the matrix
  const uint8_t* quants;  // of the first panel; the next one PanelQuantBytes on
  const uint8_t* scales;  // likewise
  int64_t columns;        // output columns: panels are ceil(columns / 16)
  int rows;
  const float* x;  // [rows, x_stride]; float formats
  int64_t x_stride;
  const int8_t* q;  // [rows, q_stride]; integer formats
  int64_t q_stride;
  const QuantizedBlock* blocks;  // [rows, k / 32]
  const float* bias;             // [columns] or nullptr
  float* out;                    // [rows, out_stride]
  int64_t out_stride;
  bool add;
};

struct Kernels {
  // x [columns] to q [columns rounded up to 32] and its blocks.
  void (*quantize_row)(const float* x, int64_t columns, int8_t* q, QuantizedBlock* blocks);
  void (*multiply)(const PanelProduct& product);
};

extern const Kernels kGenericKernels;
extern const Kernels kAvx2Kernels;        // AVX2, FMA, F16C
extern const Kernels kAvx512VnniKernels;  // the same and AVX-512 F, BW, DQ, VL, VNNI

}  // namespace kvasir::kernels::linear
