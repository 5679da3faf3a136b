// PlanStep: how many rows each running request gets in the next step. A pure function.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kvasir::runtime {

// One running request, in order of age, oldest first.
struct PlanItem {
  const std::string* key = nullptr;
  int64_t rows_left = 0;  // tokens not yet run, ≥ 1
  bool decodes = false;   // it has given its first token and has one row to run
};

struct PlanLimits {
  int64_t rows_max = 0;   // of the step
  int64_t chunk_max = 0;  // of one request
};

// Rows for each item, in its order; 0: none in this step. Every decoding item gets its row; what is
// left goes to prompts, each up to chunk_max, always to the key with the fewest rows served (by
// `served` and in this step), oldest request first; keys that are equal, by age.
// REQUIRES: no more decoding items than rows_max.
std::vector<int64_t> PlanStep(std::span<const PlanItem> items, const PlanLimits& limits,
                              const std::function<int64_t(const std::string&)>& served);

}  // namespace kvasir::runtime
