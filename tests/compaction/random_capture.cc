#include "tests/compaction/random_capture.h"

#include <cmath>
#include <random>

namespace kvasir::compaction {

HeadCapture RandomCapture(uint64_t seed, Eigen::Index slots, Eigen::Index rows,
                          Eigen::Index width) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  const auto fill = [&](MatrixF& m, Eigen::Index r) {
    m.resize(r, width);
    for (float& value : m.reshaped()) value = normal(rng);
  };
  HeadCapture capture;
  capture.scale = 1 / std::sqrt(static_cast<double>(width));
  fill(capture.keys, slots);
  fill(capture.values, slots);
  fill(capture.queries, rows);
  capture.queries *= 2;
  capture.log_sum_exp = VectorD::Constant(rows, 1e9);
  const Teacher teacher = MakeTeacher(capture);
  std::uniform_real_distribution<double> share(0.05, 1);
  for (Eigen::Index i = 0; i < rows; ++i)
    capture.log_sum_exp[i] = teacher.log_mass[i] - std::log(share(rng));
  return capture;
}

}  // namespace kvasir::compaction
