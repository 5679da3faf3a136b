// A head's compaction, from its capture to kept slots, biases and refitted values.
//
// HeadSolver does the costly part (attention, Gram matrices) once; Fit may then be asked for
// several slot counts, so that a gate can try one ratio after another. Memory while it lives: 4
// bytes × (rows × T + 2 T²). Not thread-safe; different heads may be fitted in parallel.
#pragma once

#include <vector>

#include "compaction/solver/select.h"
#include "compaction/solver/teacher.h"
#include "engine/base/status.h"

namespace kvasir::compaction {

struct FitOptions {
  PursuitOptions pursuit;
  bool output_aware = true;  // selection judges outputs as well as mass
  double value_ridge = 1e-3;
};

struct HeadFit {
  std::vector<int32_t> slots;  // indices into the block, ascending
  VectorF beta;                // [t] added to the scaled logit
  MatrixF values;              // [t, dv]
  MatrixF provenance;          // [t, groups], Provenance (fit.h)
};

class HeadSolver {
 public:
  // `group_of` [T]: the group (turn) of each slot from 0, or -1; `groups` of them.
  // Errors: InvalidArgument (Validate(capture); group_of of another size or with a group out of
  // range).
  static base::StatusOr<HeadSolver> Create(HeadCapture capture, std::vector<int32_t> group_of,
                                           int32_t groups, const FitOptions& options);

  // The best `count` slots. count ≥ T keeps every slot as it is, without bias. REQUIRES: count ≥ 0.
  HeadFit Fit(int64_t count) const;

  const Teacher& teacher() const { return teacher_; }

 private:
  HeadSolver() = default;
  HeadFit Everything() const;

  HeadCapture capture_;
  std::vector<int32_t> group_of_;
  int32_t groups_ = 0;
  FitOptions options_;
  Teacher teacher_;
  MatrixF mass_gram_;
  MatrixF selection_gram_;
};

}  // namespace kvasir::compaction
