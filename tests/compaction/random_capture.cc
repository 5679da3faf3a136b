#include "tests/compaction/random_capture.h"

#include <cmath>
#include <numbers>

#include "engine/base/rng.h"

namespace kvasir::compaction {

HeadCapture RandomCapture(uint64_t seed, Eigen::Index slots, Eigen::Index rows,
                          Eigen::Index width) {
  uint64_t drawn = 0;
  const auto uniform = [&] { return base::UniformAt(seed, 0, drawn++); };
  const auto normal = [&] {  // Box-Muller
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
  };
  const auto fill = [&](MatrixF& m, Eigen::Index r) {
    m.resize(r, width);
    for (float& value : m.reshaped()) value = normal();
  };
  HeadCapture capture;
  capture.scale = 1 / std::sqrt(static_cast<double>(width));
  fill(capture.keys, slots);
  fill(capture.values, slots);
  fill(capture.queries, rows);
  capture.queries *= 2;
  capture.log_sum_exp = VectorD::Constant(rows, 1e9);
  const Teacher teacher = MakeTeacher(capture);
  for (Eigen::Index i = 0; i < rows; ++i)
    capture.log_sum_exp[i] = teacher.log_mass[i] - std::log(0.05 + 0.95 * uniform());
  return capture;
}

}  // namespace kvasir::compaction
