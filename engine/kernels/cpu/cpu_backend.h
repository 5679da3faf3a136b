// The CPU backend: one implementation, compiled once per instruction set and chosen at run time.
//
// Numeric definition ("cpu/1"; docs/architecture.md): all paths of one precision give the same
// bits. Sums that are split over vector lanes are split over 16 lanes on every path; every fused
// multiply-add is written as one; integer sums are exact.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"

namespace kvasir::kernels {

// Instruction sets, weakest first. kGeneric is portable C++ (any CPU; slow; the yardstick of the
// others).
enum class CpuPath { kGeneric, kAvx2, kAvx512Vnni };

// kFast: weights at their packed width, int8 activations with a scale per 32, f16 KV. kFloat: float
// weights, activations and KV, for checking numbers.
enum class Precision { kFast, kFloat };

std::string_view Name(CpuPath path);
// The paths this CPU can run, weakest first; never empty.
std::vector<CpuPath> AvailableCpuPaths();

// A backend on `path`. `pool` must outlive it.
// Errors: FailedPrecondition (the CPU lacks the path's instructions).
base::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(CpuPath path, Precision precision,
                                                        base::ThreadPool& pool);

}  // namespace kvasir::kernels
