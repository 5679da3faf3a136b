// The vector intrinsics: the compiler's own, or SIMDe's where a test runs a path that the CPU
// lacks.
#pragma once

#ifdef KVASIR_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

// Missing in SIMDe 0.7.4.
static inline simde__m512 EmulatedInt32ToFloat(simde__m512i v) {
  int ints[16];
  float floats[16];
  __builtin_memcpy(ints, &v, sizeof ints);
  for (int i = 0; i < 16; ++i) floats[i] = static_cast<float>(ints[i]);
  return simde_mm512_loadu_ps(floats);
}
#define _mm512_cvtepi32_ps EmulatedInt32ToFloat
#else
#include <immintrin.h>
#endif
