#include "compaction/solver/head_fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compaction/solver/fit.h"
#include "engine/base/check.h"

namespace kvasir::compaction {

base::StatusOr<HeadSolver> HeadSolver::Create(HeadCapture capture, std::vector<int32_t> group_of,
                                              int32_t groups, const FitOptions& options) {
  KVASIR_RETURN_IF_ERROR(Validate(capture));
  if (static_cast<Eigen::Index>(group_of.size()) != capture.keys.rows()) {
    return base::InvalidArgument("groups of {} slots, the capture has {}", group_of.size(),
                                 capture.keys.rows());
  }
  for (const int32_t group : group_of) {
    if (group < -1 || group >= groups)
      return base::InvalidArgument("slot group {}, there are {}", group, groups);
  }
  HeadSolver solver;
  solver.teacher_ = MakeTeacher(capture);
  solver.mass_gram_ = MassGram(solver.teacher_);
  if (options.output_aware) {
    solver.selection_gram_ = OutputAwareGram(solver.mass_gram_, solver.teacher_, capture.values);
  }
  solver.capture_ = std::move(capture);
  solver.group_of_ = std::move(group_of);
  solver.groups_ = groups;
  solver.options_ = options;
  return solver;
}

HeadFit HeadSolver::Fit(int64_t count) const {
  KVASIR_CHECK(count >= 0);
  if (count >= capture_.keys.rows()) return Everything();
  HeadFit fit;
  if (count == 0) {
    fit.values.resize(0, capture_.values.cols());
    fit.provenance.resize(0, groups_);
    return fit;
  }
  fit.slots = Pursue(options_.output_aware ? selection_gram_ : mass_gram_, count, options_.pursuit);
  std::sort(fit.slots.begin(), fit.slots.end());
  const VectorD beta = FitBias(teacher_, fit.slots);
  const MatrixF kept = KeptAttention(capture_, fit.slots, beta);
  fit.beta = beta.cast<float>();
  fit.values = FitValues(capture_, teacher_, fit.slots, kept, teacher_.alpha, options_.value_ridge);
  fit.provenance = Provenance(capture_, teacher_, fit.slots, kept, teacher_.alpha,
                              options_.value_ridge, group_of_, groups_);
  return fit;
}

HeadFit HeadSolver::Everything() const {
  HeadFit fit;
  fit.slots.resize(capture_.keys.rows());
  std::iota(fit.slots.begin(), fit.slots.end(), 0);
  fit.beta = VectorF::Zero(capture_.keys.rows());
  fit.values = capture_.values;
  fit.provenance = MatrixF::Zero(capture_.keys.rows(), groups_);
  for (size_t slot = 0; slot < group_of_.size(); ++slot) {
    if (group_of_[slot] >= 0) fit.provenance(static_cast<Eigen::Index>(slot), group_of_[slot]) = 1;
  }
  return fit;
}

}  // namespace kvasir::compaction
