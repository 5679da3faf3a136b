// The AVX-512 path of kernels.h on a CPU without it: the same source, its 512-bit instructions
// supplied by SIMDe on top of AVX2, FMA and F16C.
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#include "engine/kernels/cpu/kernels.h"
#include "tests/engine/kernels/subjects.h"

namespace kvasir::kernels::cpu {
namespace {

// SIMDe has no 512-bit conversions.
inline simde__m512 ConvertFromHalf(simde__m256i a) {
  const simde__m256 lo = simde_mm256_cvtph_ps(simde_mm256_castsi256_si128(a));
  const simde__m256 hi = simde_mm256_cvtph_ps(simde_mm256_extracti128_si256(a, 1));
  return simde_mm512_castpd_ps(simde_mm512_insertf64x4(
      simde_mm512_castpd256_pd512(simde_mm256_castps_pd(lo)), simde_mm256_castps_pd(hi), 1));
}
inline simde__m256i ConvertToHalf(simde__m512 a) {
  const simde__m256 lo = simde_mm512_castps512_ps256(a);
  const simde__m256 hi =
      simde_mm256_castpd_ps(simde_mm512_extractf64x4_pd(simde_mm512_castps_pd(a), 1));
  return simde_mm256_set_m128i(simde_mm256_cvtps_ph(hi, 0), simde_mm256_cvtps_ph(lo, 0));
}
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#define _mm512_cvtph_ps(a) ConvertFromHalf(a)
#define _mm512_cvtps_ph(a, rounding) ConvertToHalf(a)

// Each uses what stands before it.
// clang-format off
#include "engine/kernels/cpu/simd_avx512.h"
#include "engine/kernels/cpu/elementwise_kernels.h"
#include "engine/kernels/cpu/attention_kernels.h"
// clang-format on

}  // namespace
}  // namespace kvasir::kernels::cpu

namespace kvasir::kernels::testing {

const cpu::Kernels& Avx512EmulatedKernels() { return cpu::kKernels; }

}  // namespace kvasir::kernels::testing
