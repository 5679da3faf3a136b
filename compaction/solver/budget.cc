#include "compaction/solver/budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.h"

namespace kvasir::compaction {
namespace {

struct Candidate {
  float score;
  int32_t head;
};

// Scores of a head, best first.
std::vector<float> Descending(const VectorF& scores) {
  std::vector<float> sorted(scores.begin(), scores.end());
  std::stable_sort(sorted.begin(), sorted.end(), std::greater<>());
  return sorted;
}

}  // namespace

std::vector<int64_t> GlobalBudgets(const std::vector<VectorF>& scores, int64_t total,
                                   double floor_share) {
  KVASIR_CHECK(total >= 0 && floor_share >= 0 && floor_share <= 1);
  const auto heads = static_cast<int64_t>(scores.size());
  std::vector<int64_t> budgets(scores.size(), 0);
  if (heads == 0) return budgets;
  const auto per_head =
      std::min(static_cast<int64_t>(std::ceil(floor_share * static_cast<double>(total) /
                                              static_cast<double>(heads))),
               total / heads);
  int64_t left = total;
  std::vector<Candidate> rest;
  for (int64_t head = 0; head < heads; ++head) {
    const std::vector<float> sorted = Descending(scores[head]);
    budgets[head] = std::min(per_head, static_cast<int64_t>(sorted.size()));
    left -= budgets[head];
    for (size_t i = budgets[head]; i < sorted.size(); ++i)
      rest.push_back({sorted[i], static_cast<int32_t>(head)});
  }
  // Stable: equal scores stay in the order of heads and slots.
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const auto taken = std::min(left, static_cast<int64_t>(rest.size()));
  for (int64_t i = 0; i < taken; ++i) ++budgets[rest[i].head];
  return budgets;
}

}  // namespace kvasir::compaction
