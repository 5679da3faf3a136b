// How a CPU backend is put together; for its maker and for tests that swap a part (an instruction
// set emulated on a CPU without it).
#pragma once

#include <memory>
#include <string_view>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/kernels/cpu/kernels.h"

namespace kvasir::kernels::cpu {

// A backend whose linear operations run on `linear_path` and all others on `kernels`.
// REQUIRES: the CPU can run both. `kernels` and `pool` must outlive it.
std::unique_ptr<Backend> MakeBackend(std::string_view name, const Kernels& kernels,
                                     CpuPath linear_path, Precision precision,
                                     base::ThreadPool& pool);

}  // namespace kvasir::kernels::cpu
