// The reference backend: every operation in plain loops over dequantized weights, sums in double,
// KV pages in f32. Slow; what the other backends are measured against.
#pragma once

#include <memory>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"

namespace kvasir::kernels {

// `pool` must outlive it.
std::unique_ptr<Backend> MakeReferenceBackend(base::ThreadPool& pool);

namespace reference {

// Backend::Attend over KvType::kF32 pages: one softmax over all visible slots, in double.
void Attend(base::ThreadPool& pool, const AttendParams& params);

}  // namespace reference
}  // namespace kvasir::kernels
