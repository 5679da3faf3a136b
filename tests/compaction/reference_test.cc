// Method: the shipped recipe written out naively in float64, without Gram matrices: features as
// explicit columns, least squares by QR. Goal: the solver's slots, biases and values are the
// recipe's on real heads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compaction/solver/head_fit.h"
#include "tests/compaction/fixtures.h"

namespace kvasir::compaction {
namespace {

struct Reference {
  std::vector<int32_t> slots;  // ascending
  VectorD beta;
  MatrixD values;
};

// Everything of the recipe in explicit float64 matrices.
class NaiveRecipe {
 public:
  explicit NaiveRecipe(const HeadCapture& capture)
      : q_(capture.queries.cast<double>()),
        k_(capture.keys.cast<double>()),
        v_(capture.values.cast<double>()),
        scale_(capture.scale) {
    MatrixD s = scale_ * q_ * k_.transpose();
    alpha_.resize(s.rows());
    a_ = s;
    for (Eigen::Index i = 0; i < s.rows(); ++i) {
      const VectorD e = (s.row(i).array() - s.row(i).maxCoeff()).exp();
      alpha_[i] = std::exp(s.row(i).maxCoeff() + std::log(e.sum()) - capture.log_sum_exp[i]);
      a_.row(i) = e / e.sum();
    }
    y_ = a_ * v_;
    mass_ = alpha_.asDiagonal() * a_;
    BuildFeatures();
  }

  Reference Run(int64_t count) const {
    std::vector<int32_t> chosen;
    std::vector<bool> open(v_.rows(), true);
    VectorD w;
    const auto fill = [&] {
      while (static_cast<int64_t>(chosen.size()) < count) {
        Take(std::min<int64_t>(4, count - static_cast<int64_t>(chosen.size())), w, &chosen, &open);
        w = LeastSquares(features_, target_, chosen).cwiseMax(1e-12).cwiseMin(std::exp(7));
      }
    };
    fill();
    std::vector<int32_t> kept;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (std::log(w[static_cast<Eigen::Index>(i)]) >= -7) kept.push_back(chosen[i]);
    }
    if (kept.size() < chosen.size()) {
      chosen = kept;
      w = LeastSquares(features_, target_, chosen).cwiseMax(1e-12).cwiseMin(std::exp(7));
      fill();
    }
    std::sort(chosen.begin(), chosen.end());
    Reference result;
    result.slots = chosen;
    result.beta = Bias(chosen);
    result.values = Values(chosen, result.beta);
    return result;
  }

 private:
  // Column j: M_ij (sqrt(gamma), Vc_j) for every row i.
  void BuildFeatures() {
    const MatrixD centred = v_.rowwise() - y_.colwise().mean();
    const double root = std::sqrt(centred.squaredNorm() / static_cast<double>(centred.rows()));
    const Eigen::Index n = mass_.rows(), dv = v_.cols();
    features_.resize(n * (dv + 1), v_.rows());
    for (Eigen::Index j = 0; j < v_.rows(); ++j) {
      features_.col(j).head(n) = root * mass_.col(j);
      for (Eigen::Index e = 0; e < dv; ++e)
        features_.col(j).segment((e + 1) * n, n) = centred(j, e) * mass_.col(j);
    }
    target_ = features_.rowwise().sum();
  }

  static MatrixD Columns(const MatrixD& m, const std::vector<int32_t>& columns) {
    MatrixD out(m.rows(), static_cast<Eigen::Index>(columns.size()));
    for (size_t i = 0; i < columns.size(); ++i)
      out.col(static_cast<Eigen::Index>(i)) = m.col(columns[i]);
    return out;
  }

  static VectorD LeastSquares(const MatrixD& m, const VectorD& b,
                              const std::vector<int32_t>& columns) {
    return Columns(m, columns).householderQr().solve(b);
  }

  void Take(int64_t count, const VectorD& w, std::vector<int32_t>* chosen,
            std::vector<bool>* open) const {
    const VectorD residual =
        chosen->empty() ? target_ : VectorD(target_ - Columns(features_, *chosen) * w);
    const VectorD correlation = features_.transpose() * residual;
    for (; count > 0; --count) {
      int32_t best = -1;
      for (int32_t j = 0; j < correlation.size(); ++j) {
        if ((*open)[j] && (best < 0 || correlation[j] > correlation[best])) best = j;
      }
      (*open)[best] = false;
      chosen->push_back(best);
    }
  }

  VectorD Bias(const std::vector<int32_t>& slots) const {
    const MatrixD m = Columns(mass_, slots);
    const double low = std::exp(-7), high = std::exp(7);
    // As the recipe solves it: normal equations with a jitter of 1e-6 of the mean diagonal.
    MatrixD gram = m.transpose() * m;
    const VectorD right = m.transpose() * alpha_;
    MatrixD jittered = gram;
    jittered.diagonal().array() += 1e-6 * gram.diagonal().mean();
    VectorD w = jittered.householderQr().solve(right).cwiseMax(low).cwiseMin(high);
    VectorD v = VectorD::Constant(w.size(), 1 / std::sqrt(static_cast<double>(w.size())));
    double largest = 1;
    for (int i = 0; i < 3; ++i) {
      v = gram * v;
      largest = v.norm();
      v /= largest;
    }
    for (int i = 0; i < 2; ++i) w = (w - (gram * w - right) / largest).cwiseMax(low).cwiseMin(high);
    return w.array().log();
  }

  // The ridge problem as one tall least squares: rows times alpha, and below them sqrt(ridge) I.
  MatrixD Values(const std::vector<int32_t>& slots, const VectorD& beta) const {
    const auto t = static_cast<Eigen::Index>(slots.size());
    MatrixD x(a_.rows(), t), own(t, v_.cols());
    for (Eigen::Index j = 0; j < t; ++j) {
      own.row(j) = v_.row(slots[j]);
      x.col(j) = (scale_ * q_ * k_.row(slots[j]).transpose()).array() + beta[j];
    }
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const VectorD e = (x.row(i).array() - x.row(i).maxCoeff()).exp();
      x.row(i) = e / e.sum();
    }
    const MatrixD weighted = alpha_.asDiagonal() * x;
    const double ridge = 1e-3 * weighted.squaredNorm() / static_cast<double>(t);
    MatrixD tall(x.rows() + t, t), right = MatrixD::Zero(x.rows() + t, v_.cols());
    tall << weighted, std::sqrt(ridge) * MatrixD::Identity(t, t);
    right.topRows(x.rows()) = alpha_.asDiagonal() * (y_ - x * own);
    return own + tall.householderQr().solve(right);
  }

  const MatrixD q_, k_, v_;
  const double scale_;
  VectorD alpha_;
  MatrixD a_, y_, mass_, features_;
  VectorD target_;
};

class ShippedRecipe : public testing::TestWithParam<const char*> {};

TEST_P(ShippedRecipe, GivesTheReferencesSlotsBiasesAndValues) {
  HeadFixture head = ReadHeadFixture(GetParam());
  head.capture = SampleRows(head.capture, 256);
  const NaiveRecipe naive(head.capture);
  const std::vector<int32_t> no_group(head.capture.keys.rows(), -1);
  const auto solver = HeadSolver::Create(head.capture, no_group, 0, {});
  ASSERT_TRUE(solver.ok()) << solver.status();
  for (const int64_t count : {64, 25}) {
    SCOPED_TRACE(count);
    const Reference expected = naive.Run(count);
    const HeadFit fit = solver->Fit(count);
    EXPECT_EQ(fit.slots, expected.slots);
    EXPECT_LE((fit.beta.cast<double>() - expected.beta).cwiseAbs().maxCoeff(), 1e-3);
    EXPECT_LE((fit.values.cast<double>() - expected.values).norm() / expected.values.norm(), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, ShippedRecipe, testing::Values("head0", "head1", "head2"));

}  // namespace
}  // namespace kvasir::compaction
