#include "compaction/solver/dense.h"

#include "engine/base/check.h"

namespace kvasir::compaction {

MatrixF Gram(const MatrixF& m) {
  Eigen::MatrixXf lower = Eigen::MatrixXf::Zero(m.cols(), m.cols());
  lower.selfadjointView<Eigen::Lower>().rankUpdate(m.transpose());
  return lower.selfadjointView<Eigen::Lower>();
}

MatrixD SolveRidge(MatrixD a, double ridge, const MatrixD& b) {
  a.diagonal().array() += ridge;
  const double mean = a.diagonal().mean();
  if (mean == 0) return MatrixD::Zero(b.rows(), b.cols());
  double jitter = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Eigen::LLT<MatrixD> llt(a);
    if (llt.info() == Eigen::Success) return llt.solve(b);
    const double next = jitter == 0 ? 1e-6 * mean : jitter * 10;
    a.diagonal().array() += next - jitter;
    jitter = next;
  }
  // A diagonal this heavy factors whatever the rest is, unless an entry is no number.
  base::CheckFailed(__FILE__, __LINE__, "a system of equations holds a value that is no number");
}

}  // namespace kvasir::compaction
