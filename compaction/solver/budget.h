// Global budgets: how many slots each (layer, KV head) keeps.
//
// One threshold over the scores of all heads, so that a head which many queries need keeps more
// than one that none does; and a floor, so that none is emptied by a handful of odd queries.
// Measured against uniform budgets: KL .032 for .254.
#pragma once

#include <cstdint>
#include <vector>

#include "compaction/solver/dense.h"

namespace kvasir::compaction {

// Slots per head, in the order of `scores`. The sum is exactly min(total, all slots); a head keeps
// at least min(its slots, floor_share × total / heads, rounded up) of its own, at most all. Ties go
// to the earlier head and slot. `total` below the sum of floors: the floors shrink alike. REQUIRES:
// total ≥ 0, 0 ≤ floor_share ≤ 1.
std::vector<int64_t> GlobalBudgets(const std::vector<VectorF>& scores, int64_t total,
                                   double floor_share);

}  // namespace kvasir::compaction
