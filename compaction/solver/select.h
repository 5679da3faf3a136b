// Which slots a head keeps: orthogonal matching pursuit on Gram matrices, several slots a step.
//
// With M [n, T] the features of the slots (mass alpha_i A_ij) and b their sum, the kept slots I and
// weights w make |M_I w - b|^2 small. Batch form: everything follows from G = M^T M and c = M^T b,
// and a Cholesky factor that grows with I. Sources: Zweiger et al., arXiv 2602.16284, section 3
// (OMP on attention mass); Rubinstein, Zibulevsky, Elad 2008 (Batch-OMP).
#pragma once

#include <vector>

#include "compaction/solver/teacher.h"

namespace kvasir::compaction {

struct PursuitOptions {
  int step = 4;               // slots taken at a time
  double ridge = 1e-9;        // times the mean of G's diagonal, on the diagonal of the factor
  double weight_min = 1e-12;  // of a slot during the pursuit
  double weight_max = 1096.6331584;  // e^7
  // Slots whose weight ends below this are dropped once, and others taken in their place; 0: none.
  double drop_below = 9.11881966e-4;  // e^-7
};

// The Gram matrix of mass, M = diag(alpha) A. [T, T]
MatrixF MassGram(const Teacher& teacher);

// Output-aware: G o (gamma + Vc Vc^T) with Vc = V - mean(Y), gamma = tr(Vc Vc^T) / T. A slot is
// then judged by the output it carries as well as by its mass. [T, T]
MatrixF OutputAwareGram(const MatrixF& mass_gram, const Teacher& teacher, const MatrixF& values);

// Slots in the order they were taken, `count` of them (all when there are no more), for the target
// c = G 1: every slot at weight one. Ties go to the lower index. Deterministic. REQUIRES: G square,
// 0 ≤ count.
std::vector<int32_t> Pursue(const MatrixF& gram, int64_t count, const PursuitOptions& options);

// The `count` open slots with the largest scores (all when there are fewer), largest first, ties to
// the lower index. REQUIRES: as many scores as flags.
std::vector<int32_t> LargestOpen(const VectorD& scores, const std::vector<bool>& open,
                                 int64_t count);

}  // namespace kvasir::compaction
