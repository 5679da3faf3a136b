#include "engine/runtime/step_plan.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "engine/base/check.h"

namespace kvasir::runtime {

std::vector<int64_t> PlanStep(std::span<const PlanItem> items, const PlanLimits& limits,
                              const std::function<int64_t(const std::string&)>& served) {
  std::vector<int64_t> rows(items.size(), 0);
  std::map<std::string_view, int64_t> counters;
  int64_t left = limits.rows_max;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [counter, added] = counters.try_emplace(*items[i].key, 0);
    if (added) counter->second = served(*items[i].key);
    if (!items[i].decodes) continue;
    rows[i] = 1;
    --left;
    ++counter->second;
  }
  KVASIR_CHECK(left >= 0);
  while (left > 0) {
    size_t best = items.size();
    for (size_t i = 0; i < items.size(); ++i) {
      if (rows[i] > 0) continue;
      if (best == items.size() || counters[*items[i].key] < counters[*items[best].key]) best = i;
    }
    if (best == items.size()) break;
    rows[best] = std::min({items[best].rows_left, limits.chunk_max, left});
    left -= rows[best];
    counters[*items[best].key] += rows[best];
  }
  return rows;
}

}  // namespace kvasir::runtime
