// Captures made from a seed.
#pragma once

#include "compaction/solver/teacher.h"

namespace kvasir::compaction {

// Normal keys, values and queries; the block holds between none and all of each row's attention.
HeadCapture RandomCapture(uint64_t seed, Eigen::Index slots, Eigen::Index rows, Eigen::Index width);

}  // namespace kvasir::compaction
