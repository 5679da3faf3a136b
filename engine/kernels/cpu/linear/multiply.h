// MultiplyRows with given kernels: what linear.h does with a path's, open to tests that bring
// others.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/linear/kernels.h"
#include "engine/kernels/cpu/linear/linear.h"

namespace kvasir::kernels::linear {

// The kernels of `path`. REQUIRES: built for this architecture.
const Kernels& KernelsOf(CpuPath path);

void QuantizeRow(const Kernels& kernels, const float* x, int64_t row, QuantizedRows& out);
void MultiplyRows(const Kernels& kernels, base::ThreadPool& pool, int64_t rows, const float* x,
                  int64_t x_stride, const QuantizedRows* q, std::span<const LinearTask> tasks);

}  // namespace kvasir::kernels::linear
