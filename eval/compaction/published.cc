#include "eval/compaction/published.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compaction/solver/fit.h"
#include "compaction/solver/select.h"

namespace kvasir::eval {
namespace {

using compaction::HeadCapture;
using compaction::MatrixD;
using compaction::MatrixF;
using compaction::Teacher;
using compaction::VectorD;

constexpr double kRidge = 1e-6;

// exp(S - max of the row): attention mass of every slot, [n, T].
MatrixD Mass(const HeadCapture& capture) {
  MatrixD s =
      capture.queries.cast<double>() * capture.keys.cast<double>().transpose() * capture.scale;
  const VectorD top = s.rowwise().maxCoeff();
  s.colwise() -= top;
  return s.array().exp();
}

MatrixD Columns(const MatrixD& m, const std::vector<int32_t>& columns) {
  MatrixD out(m.rows(), static_cast<Eigen::Index>(columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) out.col(i) = m.col(columns[i]);
  return out;
}

void FitRest(const HeadCapture& capture, const Teacher& teacher, bool weighted, PublishedFit* fit) {
  const MatrixF kept = compaction::KeptAttention(capture, fit->slots, fit->beta);
  const VectorD weight = weighted ? teacher.alpha : VectorD::Ones(capture.queries.rows());
  fit->values = compaction::FitValues(capture, teacher, fit->slots, kept, weight, kRidge);
}

// Least squares that grows by columns: an orthonormal basis (Gram-Schmidt, twice) and its
// triangular factor.
class GrowingLeastSquares {
 public:
  GrowingLeastSquares(VectorD target, int64_t columns)
      : target_(std::move(target)),
        basis_(target_.size(), columns),
        factor_(MatrixD::Zero(columns, columns)) {}

  void Add(const VectorD& column) {
    VectorD rest = column;
    for (int pass = 0; pass < 2; ++pass) {
      const VectorD along = basis_.leftCols(size_).transpose() * rest;
      rest -= basis_.leftCols(size_) * along;
      factor_.col(size_).head(size_) += along;
    }
    const double length = std::max(rest.norm(), 1e-300);
    factor_(size_, size_) = length;
    basis_.col(size_++) = rest / length;
  }

  VectorD Solve() const {
    const VectorD right = basis_.leftCols(size_).transpose() * target_;
    return factor_.topLeftCorner(size_, size_).triangularView<Eigen::Upper>().solve(right);
  }

 private:
  const VectorD target_;
  MatrixD basis_, factor_;
  Eigen::Index size_ = 0;
};

}  // namespace

PublishedFit HighestAttention(const HeadCapture& capture, const Teacher& teacher, int64_t count) {
  PublishedFit fit;
  const VectorD score = teacher.attention.cast<double>()
                            .array()
                            .square()
                            .colwise()
                            .mean()
                            .sqrt()
                            .transpose()
                            .matrix();
  fit.slots = compaction::LargestOpen(score, std::vector<bool>(score.size(), true), count);
  std::sort(fit.slots.begin(), fit.slots.end());

  const MatrixD mass = Mass(capture), kept = Columns(mass, fit.slots);
  const VectorD total = mass.rowwise().sum();
  const double low = std::exp(-3), high = std::exp(3);
  VectorD w = kept.householderQr().solve(total).cwiseMax(low).cwiseMin(high);
  const MatrixD gram = kept.transpose() * kept;
  VectorD v = VectorD::Constant(w.size(), 1 / std::sqrt(static_cast<double>(w.size())));
  double largest = 1;
  for (int i = 0; i < 3; ++i) {
    v = gram * v;
    largest = v.norm();
    v /= largest;
  }
  for (int i = 0; i < 2; ++i) {
    w = (w - (gram * w - kept.transpose() * total) / largest).cwiseMax(low).cwiseMin(high);
  }
  fit.beta = w.array().log();
  FitRest(capture, teacher, /*weighted=*/false, &fit);
  return fit;
}

PublishedFit MatchingPursuit(const HeadCapture& capture, const Teacher& teacher, int64_t count,
                             const OmpOptions& options) {
  MatrixD m;
  VectorD target;
  if (options.weighted) {
    m = Mass(capture);
    for (Eigen::Index i = 0; i < m.rows(); ++i) m.row(i) *= teacher.alpha[i] / m.row(i).sum();
    target = teacher.alpha;
  } else {
    m = Mass(capture);
    target = m.rowwise().sum();
  }
  PublishedFit fit;
  GrowingLeastSquares problem(target, count);
  std::vector<bool> open(m.cols(), true);
  VectorD residual = target, w;
  while (static_cast<int64_t>(fit.slots.size()) < std::min<int64_t>(count, m.cols())) {
    const VectorD correlation = m.transpose() * residual;
    const auto wanted =
        std::min<int64_t>(options.step, count - static_cast<int64_t>(fit.slots.size()));
    for (const int32_t slot : compaction::LargestOpen(correlation, open, wanted)) {
      open[slot] = false;
      fit.slots.push_back(slot);
      problem.Add(m.col(slot));
    }
    w = problem.Solve().cwiseMax(1e-12).cwiseMin(std::exp(7));
    residual = target - Columns(m, fit.slots) * w;
  }
  fit.beta = w.array().log();
  FitRest(capture, teacher, options.weighted, &fit);
  return fit;
}

}  // namespace kvasir::eval
