#include "engine/kernels/cpu/linear/multiply.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"

namespace kvasir::kernels {
namespace linear {
namespace {

constexpr size_t kTasksMax = 16;
// Work items per thread: enough to even out threads of unequal speed.
constexpr int64_t kItemsPerThread = 8;
// Weight bytes of an item: at least so many that handing it out costs nothing beside it (one row),
// at most so many that a thread which loses its CPU does not keep the others waiting long.
constexpr int64_t kItemBytesMin = 16 << 10;
constexpr int64_t kItemBytesMax = 512 << 10;

struct Input {
  int64_t rows;
  const float* x;
  int64_t x_stride;
  const QuantizedRows* q;
};

// Work items of one task: (row range, panel range); panels run fastest.
struct Split {
  int64_t first_item = 0;
  int64_t panels = 0;
  int64_t panels_per_item = 1;
  int64_t items_per_rows = 0;
};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `product` restricted to one item.
PanelProduct ProductOf(const Input& in, const LinearTask& task, int64_t first_row, int64_t rows,
                       int64_t first_panel, int64_t panels) {
  const PackedMatrix& w = static_cast<const PackedMatrix&>(*task.weight);
  const int64_t quant_bytes = PanelQuantBytes(w.format(), w.columns());
  const int64_t scale_bytes = PanelScaleBytes(w.format(), w.columns());
  const int64_t all_panels = CeilDiv(w.rows(), kPanel);
  const int64_t first = first_panel * kPanel;
  PanelProduct p = {};
  p.format = w.format();
  p.k = w.columns();
  p.quants = w.data() + first_panel * quant_bytes;
  p.scales = w.data() + all_panels * quant_bytes + first_panel * scale_bytes;
  p.columns = std::min(panels * kPanel, w.rows() - first);
  p.rows = static_cast<int>(rows);
  if (w.integer()) {
    p.q = in.q->values(first_row);
    p.q_stride = in.q->blocks() * kBlock;
    p.blocks = in.q->block(first_row);
  } else {
    p.x = in.x + first_row * in.x_stride;
    p.x_stride = in.x_stride;
  }
  p.bias = task.bias == nullptr ? nullptr : task.bias + first;
  p.out = task.out + first_row * task.out_stride + first;
  p.out_stride = task.out_stride;
  p.add = task.add;
  return p;
}

void CheckTask(const Input& in, const LinearTask& task) {
  const PackedMatrix& w = static_cast<const PackedMatrix&>(*task.weight);
  KVASIR_CHECK(task.out != nullptr && (in.rows == 1 || task.out_stride >= w.rows()));
  if (w.integer()) {
    KVASIR_CHECK(in.q != nullptr && in.q->columns() == w.columns() && in.rows <= in.q->rows_max());
  } else {
    KVASIR_CHECK(in.x != nullptr && (in.rows == 1 || in.x_stride >= w.columns()));
  }
}

}  // namespace

const Kernels& KernelsOf(CpuPath path) {
#if defined(__x86_64__)
  if (path == CpuPath::kAvx512Vnni) return kAvx512VnniKernels;
  if (path == CpuPath::kAvx2) return kAvx2Kernels;
#endif
  KVASIR_CHECK(path == CpuPath::kGeneric);
  return kGenericKernels;
}

void QuantizeRow(const Kernels& kernels, const float* x, int64_t row, QuantizedRows& out) {
  KVASIR_CHECK(row >= 0 && row < out.rows_max());
  kernels.quantize_row(x, out.columns(), out.values(row), out.block(row));
}

void MultiplyRows(const Kernels& kernels, base::ThreadPool& pool, int64_t rows, const float* x,
                  int64_t x_stride, const QuantizedRows* q, std::span<const LinearTask> tasks) {
  KVASIR_CHECK(tasks.size() <= kTasksMax);
  if (rows == 0) return;
  const Input in = {rows, x, x_stride, q};
  const int64_t row_ranges = CeilDiv(rows, kRowsMax);
  // Ranges of equal size, in whole tiles of 8 rows.
  const int64_t range = std::min<int64_t>(kRowsMax, CeilDiv(CeilDiv(rows, row_ranges), 8) * 8);

  int64_t bytes = 0;
  for (const LinearTask& task : tasks) {
    CheckTask(in, task);
    bytes += static_cast<int64_t>(task.weight->bytes());
  }
  const int64_t item_bytes = std::clamp(bytes * row_ranges / (pool.threads() * kItemsPerThread),
                                        kItemBytesMin / std::min<int64_t>(rows, 16), kItemBytesMax);
  std::array<Split, kTasksMax> splits;
  int64_t items = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    Split& s = splits[t];
    s.first_item = items;
    s.panels = CeilDiv(tasks[t].weight->rows(), kPanel);
    const int64_t panel_bytes = static_cast<int64_t>(tasks[t].weight->bytes()) / s.panels;
    s.panels_per_item = std::clamp<int64_t>(item_bytes / panel_bytes, 1, s.panels);
    s.items_per_rows = CeilDiv(s.panels, s.panels_per_item);
    items += row_ranges * s.items_per_rows;
  }
  pool.ParallelFor(items, [&](int64_t item, int) {
    size_t t = tasks.size() - 1;
    while (splits[t].first_item > item) --t;
    const Split& s = splits[t];
    const int64_t first_row = (item - s.first_item) / s.items_per_rows * range;
    const int64_t first_panel = (item - s.first_item) % s.items_per_rows * s.panels_per_item;
    const int64_t item_rows = std::min(range, rows - first_row);
    if (item_rows <= 0) return;
    kernels.multiply(ProductOf(in, tasks[t], first_row, item_rows, first_panel,
                               std::min(s.panels_per_item, s.panels - first_panel)));
  });
}

}  // namespace linear

void QuantizeRow(CpuPath path, const float* x, int64_t row, QuantizedRows& out) {
  linear::QuantizeRow(linear::KernelsOf(path), x, row, out);
}

void MultiplyRows(CpuPath path, base::ThreadPool& pool, int64_t rows, const float* x,
                  int64_t x_stride, const QuantizedRows* q, std::span<const LinearTask> tasks) {
  linear::MultiplyRows(linear::KernelsOf(path), pool, rows, x, x_stride, q, tasks);
}

}  // namespace kvasir::kernels
