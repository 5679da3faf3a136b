#include <algorithm>
#include <string>

#include "engine/base/check.h"
#include "engine/gguf/quote.h"
#include "engine/kernels/cpu/linear/linear.h"
#include "engine/kernels/cpu/linear/pack.h"

namespace kvasir::kernels {
namespace {

using base::Status;

constexpr int64_t kExtentMax = int64_t{1} << 24;

Status CheckShape(const gguf::Tensor& tensor) {
  const std::string name = gguf::Quote(tensor.name);
  if (tensor.dims.size() != 2) {
    return base::InvalidArgument("tensor {}: {} dimensions, a matrix has 2", name,
                                 tensor.dims.size());
  }
  const int64_t columns = tensor.columns();
  const int64_t rows = tensor.dims[1];
  if (columns > kExtentMax || rows > kExtentMax) {
    return base::Unimplemented("tensor {}: {} rows of {} columns, at most {} each", name, rows,
                               columns, kExtentMax);
  }
  const gguf::TypeInfo& info = gguf::Info(tensor.type);
  if (columns < 1 || rows < 1 || columns % info.block_elements != 0) {
    return base::InvalidArgument("tensor {}: {} rows of {} columns, type {} has blocks of {}", name,
                                 rows, columns, info.name, info.block_elements);
  }
  const size_t bytes = static_cast<size_t>(columns / info.block_elements * info.block_bytes * rows);
  if (tensor.data.size() < bytes) {
    return base::InvalidArgument("tensor {}: {} bytes of data, its shape takes {}", name,
                                 tensor.data.size(), bytes);
  }
  return base::OkStatus();
}

}  // namespace

base::StatusOr<std::unique_ptr<PackedMatrix>> PackedMatrix::Pack(const gguf::Tensor& tensor,
                                                                 Precision precision,
                                                                 base::ThreadPool& pool) {
  KVASIR_RETURN_IF_ERROR(CheckShape(tensor));
  std::unique_ptr<PackedMatrix> matrix(new PackedMatrix);
  matrix->format_ =
      precision == Precision::kFloat ? linear::Format::kF32 : linear::FormatOf(tensor.type);
  matrix->rows_ = tensor.dims[1];
  matrix->columns_ = tensor.columns();
  const linear::Format format = matrix->format_;
  const int64_t k = matrix->columns_;
  const int64_t panels = (matrix->rows_ + linear::kPanel - 1) / linear::kPanel;
  const int64_t quant_bytes = linear::PanelQuantBytes(format, k);
  const int64_t scale_bytes = linear::PanelScaleBytes(format, k);
  matrix->memory_ = linear::AlignedBytes(static_cast<size_t>(panels * (quant_bytes + scale_bytes)));
  uint8_t* const memory = matrix->memory_.data();
  if (memory == nullptr) {
    return base::ResourceExhausted("tensor {}: no memory for {} bytes", gguf::Quote(tensor.name),
                                   matrix->memory_.size());
  }
  const gguf::TypeInfo& info = gguf::Info(tensor.type);
  const int64_t row_bytes = k / info.block_elements * info.block_bytes;
  const int64_t rows = matrix->rows_;
  pool.ParallelFor(panels, [&](int64_t panel, int) {
    const int64_t first = panel * linear::kPanel;
    const linear::PanelSource source = {
        .type = tensor.type,
        .rows = tensor.data.data() + first * row_bytes,
        .row_bytes = row_bytes,
        .columns = static_cast<int>(std::min<int64_t>(linear::kPanel, rows - first)),
        .k = k};
    linear::PackPanel(source, format, memory + panel * quant_bytes,
                      memory + panels * quant_bytes + panel * scale_bytes);
  });
  return matrix;
}

}  // namespace kvasir::kernels
