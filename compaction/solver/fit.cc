#include "compaction/solver/fit.h"

#include <cmath>

#include "engine/base/check.h"

namespace kvasir::compaction {
namespace {

template <typename Matrix>
Matrix Rows(const Matrix& m, std::span<const int32_t> rows) {
  Matrix out(static_cast<Eigen::Index>(rows.size()), m.cols());
  for (size_t i = 0; i < rows.size(); ++i) out.row(i) = m.row(rows[i]);
  return out;
}

// (X^T W^2 X + ridge tr/t I)^-1 X^T W^2 R: the correction that the ridge problem adds.
MatrixD Correction(const MatrixF& kept, const VectorD& weight, double ridge,
                   const MatrixF& residual) {
  const MatrixF weighted = weight.cast<float>().asDiagonal() * kept;
  const MatrixF weighted_residual = weight.cast<float>().asDiagonal() * residual;
  const MatrixD gram = Gram(weighted).cast<double>();
  const MatrixD right = (weighted.transpose() * weighted_residual).cast<double>();
  return SolveRidge(gram, ridge * gram.trace() / static_cast<double>(gram.rows()), right);
}

// Of the mean diagonal: a Gram matrix summed in float32 holds no more.
constexpr double kBiasRidge = 1e-6;

// Largest eigenvalue of a symmetric positive matrix, from three power iterations.
double PowerIteration(const MatrixD& a) {
  VectorD v = VectorD::Constant(a.rows(), 1.0 / std::sqrt(static_cast<double>(a.rows())));
  double largest = 0;
  for (int i = 0; i < 3; ++i) {
    v = a * v;
    largest = v.norm();
    if (!(largest > 0)) return 0;
    v /= largest;
  }
  return largest;
}

}  // namespace

VectorD FitBias(const Teacher& teacher, std::span<const int32_t> slots) {
  const auto t = static_cast<Eigen::Index>(slots.size());
  if (t == 0) return VectorD();
  MatrixD mass(teacher.attention.rows(), t);
  for (Eigen::Index j = 0; j < t; ++j) {
    mass.col(j) = teacher.alpha.cwiseProduct(teacher.attention.col(slots[j]).cast<double>());
  }
  const MatrixD g = mass.transpose() * mass;
  const VectorD target = mass.transpose() * teacher.alpha;
  const double low = std::exp(-kLogWeightMax), high = std::exp(kLogWeightMax);
  const double largest = PowerIteration(g);
  // Queries that look at none of these slots say nothing about their weight.
  if (!(largest > 0)) return VectorD::Zero(t);
  VectorD w =
      SolveRidge(g, kBiasRidge * g.diagonal().mean(), target).col(0).cwiseMax(low).cwiseMin(high);
  for (int step = 0; step < 2; ++step) {
    w = (w - (g * w - target) / largest).cwiseMax(low).cwiseMin(high);
  }
  return w.array().log();
}

MatrixF KeptAttention(const HeadCapture& capture, std::span<const int32_t> slots,
                      const VectorD& beta) {
  const MatrixF keys = Rows(capture.keys, slots);
  MatrixF x = capture.queries * keys.transpose();
  x *= static_cast<float>(capture.scale);
  x.rowwise() += beta.cast<float>().transpose();
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const float top = x.row(i).maxCoeff();
    x.row(i) = (x.row(i).array() - top).exp();
    x.row(i) *= static_cast<float>(1.0 / x.row(i).cast<double>().sum());
  }
  return x;
}

MatrixF FitValues(const HeadCapture& capture, const Teacher& teacher,
                  std::span<const int32_t> slots, const MatrixF& kept, const VectorD& weight,
                  double ridge) {
  const MatrixF own = Rows(capture.values, slots);
  if (slots.empty()) return own;
  const MatrixF residual = teacher.outputs - kept * own;
  return own + Correction(kept, weight, ridge, residual).cast<float>();
}

MatrixF Provenance(const HeadCapture& capture, const Teacher& teacher,
                   std::span<const int32_t> slots, const MatrixF& kept, const VectorD& weight,
                   double ridge, std::span<const int32_t> group_of, int32_t groups) {
  KVASIR_CHECK(static_cast<Eigen::Index>(group_of.size()) == capture.keys.rows());
  MatrixF member = MatrixF::Zero(capture.keys.rows(), groups);
  for (size_t slot = 0; slot < group_of.size(); ++slot) {
    KVASIR_CHECK(group_of[slot] < groups);
    if (group_of[slot] >= 0) member(static_cast<Eigen::Index>(slot), group_of[slot]) = 1;
  }
  const MatrixF own = Rows(member, slots);
  if (slots.empty() || groups == 0) return own;
  // C_v is linear in V: the same problem with the members' indicator in the place of V.
  const MatrixF residual = teacher.attention * member - kept * own;
  return own + Correction(kept, weight, ridge, residual).cast<float>();
}

}  // namespace kvasir::compaction
