#include "compaction/solver/teacher.h"

#include <algorithm>
#include <cmath>

namespace kvasir::compaction {

base::Status Validate(const HeadCapture& capture) {
  const auto slots = capture.keys.rows(), rows = capture.queries.rows();
  if (slots == 0) return base::InvalidArgument("a capture without slots");
  if (rows == 0) return base::InvalidArgument("a capture without query rows");
  if (capture.values.rows() != slots) {
    return base::InvalidArgument("{} values for {} keys", capture.values.rows(), slots);
  }
  if (capture.queries.cols() != capture.keys.cols()) {
    return base::InvalidArgument("queries of width {}, keys of width {}", capture.queries.cols(),
                                 capture.keys.cols());
  }
  if (capture.log_sum_exp.size() != rows) {
    return base::InvalidArgument("{} log-sum-exps for {} query rows", capture.log_sum_exp.size(),
                                 rows);
  }
  if (!(capture.scale > 0) || !std::isfinite(capture.scale)) {
    return base::InvalidArgument("scale {}, must be positive", capture.scale);
  }
  if (!capture.keys.allFinite() || !capture.values.allFinite() || !capture.queries.allFinite() ||
      !capture.log_sum_exp.allFinite()) {
    return base::InvalidArgument("a key, value, query or log-sum-exp is not finite");
  }
  return base::OkStatus();
}

Teacher MakeTeacher(const HeadCapture& capture) {
  Teacher teacher;
  MatrixF& a = teacher.attention;
  a.noalias() = capture.queries * capture.keys.transpose();
  a *= static_cast<float>(capture.scale);
  teacher.log_mass.resize(a.rows());
  teacher.alpha.resize(a.rows());
  for (Eigen::Index i = 0; i < a.rows(); ++i) {
    const float top = a.row(i).maxCoeff();
    a.row(i) = (a.row(i).array() - top).exp();
    const double mass = a.row(i).cast<double>().sum();
    a.row(i) *= static_cast<float>(1.0 / mass);
    teacher.log_mass[i] = static_cast<double>(top) + std::log(mass);
    // More than the whole is rounding.
    teacher.alpha[i] = std::min(1.0, std::exp(teacher.log_mass[i] - capture.log_sum_exp[i]));
  }
  teacher.outputs.noalias() = a * capture.values;
  return teacher;
}

VectorF SlotScores(const Teacher& teacher) {
  VectorF scores = VectorF::Zero(teacher.attention.cols());
  for (Eigen::Index i = 0; i < teacher.attention.rows(); ++i) {
    scores = scores.cwiseMax(static_cast<float>(teacher.alpha[i]) *
                             teacher.attention.row(i).transpose());
  }
  return scores;
}

HeadCapture SampleRows(const HeadCapture& capture, Eigen::Index rows_max) {
  const auto rows = capture.queries.rows();
  if (rows <= rows_max) return capture;
  HeadCapture sample;
  sample.keys = capture.keys;
  sample.values = capture.values;
  sample.scale = capture.scale;
  sample.queries.resize(rows_max, capture.queries.cols());
  sample.log_sum_exp.resize(rows_max);
  for (Eigen::Index i = 0; i < rows_max; ++i) {
    const auto row = i * rows / rows_max;
    sample.queries.row(i) = capture.queries.row(row);
    sample.log_sum_exp[i] = capture.log_sum_exp[row];
  }
  return sample;
}

}  // namespace kvasir::compaction
