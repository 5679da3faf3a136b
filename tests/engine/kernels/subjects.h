// The backends under test: every CPU path that can run here, and AVX-512 emulated where the CPU
// lacks it, in both precisions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/kernels/cpu/kernels.h"

namespace kvasir::kernels::testing {

struct Subject {
  std::string name;
  Precision precision = Precision::kFast;
  const cpu::Kernels* kernels = nullptr;
  std::function<std::unique_ptr<Backend>(base::ThreadPool&)> make;
};

// The first is the generic path.
std::vector<Subject> Subjects(Precision precision);
std::vector<Subject> AllSubjects();

// The AVX-512 kernels through SIMDe (kernels_avx512_emulated.cc); needs AVX2, FMA and F16C.
const cpu::Kernels& Avx512EmulatedKernels();

}  // namespace kvasir::kernels::testing
