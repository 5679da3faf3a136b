// What the kept slots get: a bias each, and refitted values.
//
// Together they make softmax(S_I + beta) C_v follow the block's own attention, in mass and in
// output, for the captured queries. Source: Zweiger et al., arXiv 2602.16284, section 3; weighting
// by alpha, clamps and ridge are ours (measured: without beta KL .093 for .032, without refitted
// values .340).
#pragma once

#include <span>
#include <vector>

#include "compaction/solver/teacher.h"

namespace kvasir::compaction {

inline constexpr double kLogWeightMax = 7;  // |beta| of a kept slot at most

// beta [t] of the slots: ln of non-negative weights that minimise |M_I w - alpha|^2 (M: mass),
// clamped to e^-7 … e^7 and improved by two projected gradient steps. Summed and solved in float64:
// the columns of near slots are all but parallel.
VectorD FitBias(const Teacher& teacher, std::span<const int32_t> slots);

// softmax(S_I + beta): the kept slots' attention. [n, t]
MatrixF KeptAttention(const HeadCapture& capture, std::span<const int32_t> slots,
                      const VectorD& beta);

// C_v [t, dv] = V_I + argmin_C |diag(weight) (X C - (Y - X V_I))|^2 + ridge tr(X^T W^2 X)/t |C|^2:
// values are drawn to the slots' own. A small ridge gives values many times as large as any
// original and bad fits. `weight` [n]: alpha for the shipped recipe, ones for the published one.
MatrixF FitValues(const HeadCapture& capture, const Teacher& teacher,
                  std::span<const int32_t> slots, const MatrixF& kept, const VectorD& weight,
                  double ridge);

// How much of each slot's refitted value comes from the tokens of each group: sum over the group's
// tokens of d C_v / d V. `group_of` [T]: 0 ≤ group < groups, or -1 for none. [t, groups]
MatrixF Provenance(const HeadCapture& capture, const Teacher& teacher,
                   std::span<const int32_t> slots, const MatrixF& kept, const VectorD& weight,
                   double ridge, std::span<const int32_t> group_of, int32_t groups);

}  // namespace kvasir::compaction
