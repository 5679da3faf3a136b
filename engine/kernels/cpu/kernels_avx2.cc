// The avx2 path of kernels.h.
#include "engine/kernels/cpu/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace kvasir::kernels::cpu {
namespace {

// Each uses what stands before it.
// clang-format off
#include "engine/kernels/cpu/simd_avx2.h"
#include "engine/kernels/cpu/elementwise_kernels.h"
#include "engine/kernels/cpu/attention_kernels.h"
// clang-format on

}  // namespace

const Kernels& Avx2Kernels() { return kKernels; }

}  // namespace kvasir::kernels::cpu

#endif
