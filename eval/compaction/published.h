// Attention Matching as published, for comparison: Zweiger et al., arXiv 2602.16284, section 3 and
// reference code `adamzweiger/compaction`. One head; what ships is compaction/solver.
#pragma once

#include <vector>

#include "compaction/solver/teacher.h"

namespace kvasir::eval {

struct PublishedFit {
  std::vector<int32_t>
      slots;  // AM-HA: ascending; AM-OMP: in the order taken. beta and values follow it.
  compaction::VectorD beta;
  compaction::MatrixF values;
};

// AM-HighestAttention: the `count` slots with the largest root mean square of attention.
PublishedFit HighestAttention(const compaction::HeadCapture& capture,
                              const compaction::Teacher& teacher, int64_t count);

struct OmpOptions {
  int step = 1;           // slots taken at a time
  bool weighted = false;  // rows times alpha: relative mass
};
// AM-OMP: orthogonal matching pursuit on attention mass with the residual kept in float64.
PublishedFit MatchingPursuit(const compaction::HeadCapture& capture,
                             const compaction::Teacher& teacher, int64_t count,
                             const OmpOptions& options);

}  // namespace kvasir::eval
