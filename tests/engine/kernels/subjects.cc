#include "tests/engine/kernels/subjects.h"

#include <algorithm>

#include "engine/kernels/cpu/cpu_backend_parts.h"

namespace kvasir::kernels::testing {
namespace {

const cpu::Kernels& KernelsOf(CpuPath path) {
#if defined(__x86_64__)
  if (path == CpuPath::kAvx2) return cpu::Avx2Kernels();
  if (path == CpuPath::kAvx512Vnni) return cpu::Avx512Kernels();
#endif
  return cpu::GenericKernels();
}

}  // namespace

std::vector<Subject> Subjects(Precision precision) {
  std::vector<Subject> subjects;
  const std::vector<CpuPath> paths = AvailableCpuPaths();
  const auto has = [&](CpuPath path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  for (const CpuPath path : paths) {
    subjects.push_back({std::string(Name(path)), precision, &KernelsOf(path),
                        [path, precision](base::ThreadPool& pool) {
                          return std::move(MakeCpuBackend(path, precision, pool)).value();
                        }});
  }
  if (has(CpuPath::kAvx2) && !has(CpuPath::kAvx512Vnni)) {
    subjects.push_back({"avx512 emulated", precision, &Avx512EmulatedKernels(),
                        [precision](base::ThreadPool& pool) {
                          return cpu::MakeBackend("avx512 emulated", Avx512EmulatedKernels(),
                                                  CpuPath::kAvx2, precision, pool);
                        }});
  }
  return subjects;
}

std::vector<Subject> AllSubjects() {
  std::vector<Subject> all = Subjects(Precision::kFast);
  for (Subject& subject : Subjects(Precision::kFloat)) all.push_back(std::move(subject));
  return all;
}

}  // namespace kvasir::kernels::testing
