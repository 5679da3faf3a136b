// What exact attention does on the block that is to be compacted: the target of every fit.
//
// One KV head. The block has T slots (keys K, values V), the captured queries n rows: those of all
// query heads that share the KV head. Source: Attention Matching (Zweiger et al., arXiv
// 2602.16284), section 3; the weights alpha are ours.
#pragma once

#include "compaction/solver/dense.h"
#include "engine/base/status.h"

namespace kvasir::compaction {

struct HeadCapture {
  MatrixF keys;         // [T, d] after RoPE, at the positions of the context they were captured in
  MatrixF values;       // [T, dv]
  MatrixF queries;      // [n, d] after RoPE
  VectorD log_sum_exp;  // [n] over the whole context of the query, block and everything else
  double scale = 0;     // of the logits: 1 / sqrt(d) for most models
};

struct Teacher {
  MatrixF attention;  // A [n, T]: softmax over the block alone
  MatrixF outputs;    // Y [n, dv] = A V
  VectorD log_mass;   // [n] log-sum-exp over the block
  VectorD alpha;      // [n] share of the row's whole softmax that falls on the block, 0 to 1
};

// Errors: InvalidArgument (no slots, no rows, sizes that do not fit each other, a value that is not
// finite).
base::Status Validate(const HeadCapture& capture);

// REQUIRES: Validate(capture) is OK.
Teacher MakeTeacher(const HeadCapture& capture);

// [T] max over rows of alpha_i A_ij: what a slot is worth to the query that needs it most.
VectorF SlotScores(const Teacher& teacher);

// The rows that a fit uses when there are more than `rows_max`: evenly spaced, the same for the
// same sizes.
HeadCapture SampleRows(const HeadCapture& capture, Eigen::Index rows_max);

}  // namespace kvasir::compaction
