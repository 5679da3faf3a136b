// The vector intrinsics: the compiler's own, or SIMDe's where a test runs a path that the CPU
// lacks.
#pragma once

#ifdef KVASIR_EMULATE_AVX512
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#else
#include <immintrin.h>
#endif
