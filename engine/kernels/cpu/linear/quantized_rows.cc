#include "engine/base/check.h"
#include "engine/kernels/cpu/linear/linear.h"

namespace kvasir::kernels {
namespace {

int64_t BlocksOf(int64_t columns) { return (columns + linear::kBlock - 1) / linear::kBlock; }

}  // namespace

QuantizedRows::QuantizedRows(int64_t rows_max, int64_t columns_max)
    : rows_max_(rows_max), columns_max_(columns_max) {
  KVASIR_CHECK(rows_max >= 1 && columns_max >= 1);
  const size_t blocks = static_cast<size_t>(rows_max * BlocksOf(columns_max));
  values_ = linear::AlignedBytes(blocks * linear::kBlock);
  block_ = linear::AlignedBytes(blocks * sizeof(linear::QuantizedBlock));
  KVASIR_CHECK(values_.data() != nullptr && block_.data() != nullptr);
  SetColumns(columns_max);
}

void QuantizedRows::SetColumns(int64_t columns) {
  KVASIR_CHECK(columns >= 1 && columns <= columns_max_);
  columns_ = columns;
  blocks_ = BlocksOf(columns);
}

}  // namespace kvasir::kernels
