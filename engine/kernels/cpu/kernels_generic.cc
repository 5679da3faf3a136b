// The generic path of kernels.h.
#include "engine/kernels/cpu/kernels.h"

namespace kvasir::kernels::cpu {
namespace {

// Each uses what stands before it.
// clang-format off
#include "engine/kernels/cpu/simd_generic.h"
#include "engine/kernels/cpu/elementwise_kernels.h"
#include "engine/kernels/cpu/attention_kernels.h"
// clang-format on

}  // namespace

const Kernels& GenericKernels() { return kKernels; }

}  // namespace kvasir::kernels::cpu
