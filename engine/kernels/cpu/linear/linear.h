// Matrix products of the CPU backend: weights repacked once at load, activations rounded to int8
// per 32 elements, all products of a group in one parallel region.
//
// Numeric definition, "cpu/1". It fixes every bit of every finite result, on every path, for every
// number of rows, threads and work items. fma is one rounding; integers are exact; (float) of an
// integer is exact (all stay below 2^24). A NaN stays a NaN, its payload is not defined.
//
// Activations: blocks b of 32 elements x_i, the last one filled up with zeros.
//   a = max |x_i|;  a below 2^-100: scale x̂_b = 0, all q_i = 0;  a not finite: x̂_b = NaN, all q_i =
//   0;  else x̂_b = a / 127,  q_i = round to nearest even (x_i · (127 / a)),  |q_i| ≤ 127,  s_b = Σ
//   q_i,  ŝ_b = x̂_b · (float)s_b.
// Weights of one output column; w_i is the integer of the file format with its offset (8, 16, 32)
// taken off where the type has no minimum. acc starts at 0; blocks b ascend:
//   Q4_0 Q5_0 Q8_0   acc = fma(d_b, x̂_b · (float)Σ w_i q_i, acc)
//   Q4_1 Q5_1        the same, then acc = fma(m_b, ŝ_b, acc)
//   Q4_K Q5_K        super-blocks of 8 blocks, integer scales c_b and minima n_b; t = u = 0;
//                    t = fma(x̂_b, (float)(c_b · Σ w_i q_i), t);  u = fma(ŝ_b, (float)n_b, u);
//                    then acc = fma(d, t, acc);  acc = fma(−dmin, u, acc)
//   Q6_K             t = fma(x̂_b, (float)(c_2b · Σ_(i < 16) w_i q_i + c_2b+1 · Σ_(i ≥ 16) w_i q_i),
//   t); acc = fma(d, t, acc) F32 F16 BF16, and every type with Precision::kFloat (dequantized): acc
//   = fma(w_k, x_k, acc), k ascending, no rounding of x.
// Result: v = acc;  v = v + bias when there is one;  v = v + old output when adding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/file.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/kernels/cpu/linear/aligned.h"
#include "engine/kernels/cpu/linear/layout.h"

namespace kvasir::kernels {

// PackedMatrix: a weight in panels of 16 output columns at the file type's own width (layout.h);
// float types and Precision::kFloat as float panels. At most 2 % larger than the file's bytes when
// N is a multiple of 16. Threads: immutable; concurrent reads allowed.
class PackedMatrix final : public Matrix {
 public:
  // Repacks `tensor` on `pool`. Keeps no reference to it.
  // Errors: InvalidArgument (not 2-D), Unimplemented (rows or columns above 2^24),
  // ResourceExhausted (memory).
  //         All name the tensor.
  static base::StatusOr<std::unique_ptr<PackedMatrix>> Pack(const gguf::Tensor& tensor,
                                                            Precision precision,
                                                            base::ThreadPool& pool);

  int64_t rows() const override { return rows_; }
  int64_t columns() const override { return columns_; }
  size_t bytes() const override { return memory_.size(); }
  // Whether products read the int8 activations; else they read the floats.
  bool integer() const { return linear::IsInteger(format_); }

  linear::Format format() const { return format_; }
  // The packed panels, as layout.h describes them.
  const uint8_t* data() const { return memory_.data(); }

 private:
  PackedMatrix() = default;

  linear::Format format_{};
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  linear::AlignedBytes memory_;
};

// QuantizedRows: int8 activations [rows, columns] with their block scales and sums (see the numeric
// definition). Threads: different rows may be written concurrently.
class QuantizedRows {
 public:
  // Room for `rows_max` rows of up to `columns_max` elements.
  QuantizedRows(int64_t rows_max, int64_t columns_max);

  // Sets the width of all rows; what they held is undefined afterwards. REQUIRES: columns in [1,
  // columns_max].
  void SetColumns(int64_t columns);

  int64_t rows_max() const { return rows_max_; }
  int64_t columns_max() const { return columns_max_; }
  int64_t columns() const { return columns_; }
  // Blocks per row: columns / 32, rounded up.
  int64_t blocks() const { return blocks_; }

  int8_t* values(int64_t row) { return values_of(row); }
  const int8_t* values(int64_t row) const { return values_of(row); }
  linear::QuantizedBlock* block(int64_t row) { return block_of(row); }
  const linear::QuantizedBlock* block(int64_t row) const { return block_of(row); }

 private:
  int8_t* values_of(int64_t row) const {
    return reinterpret_cast<int8_t*>(values_.data()) + row * blocks_ * linear::kBlock;
  }
  linear::QuantizedBlock* block_of(int64_t row) const {
    return reinterpret_cast<linear::QuantizedBlock*>(block_.data()) + row * blocks_;
  }

  int64_t rows_max_, columns_max_, columns_ = 0, blocks_ = 0;
  linear::AlignedBytes values_, block_;
};

// Rounds x [out.columns()] to row `row` of `out`. Any floats are allowed.
void QuantizeRow(CpuPath path, const float* x, int64_t row, QuantizedRows& out);

// All tasks on rows [0, rows) in one parallel region. Integer matrices read `q`, the others x
// [rows, x_stride] (either may be null when no task reads it). Weights are PackedMatrix; outputs do
// not overlap each other or the inputs. REQUIRES: at most 16 tasks; every weight's columns() equal
// the input's width; the CPU has `path`.
void MultiplyRows(CpuPath path, base::ThreadPool& pool, int64_t rows, const float* x,
                  int64_t x_stride, const QuantizedRows* q, std::span<const LinearTask> tasks);

}  // namespace kvasir::kernels
