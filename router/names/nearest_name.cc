#include "router/names/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kvasir::names {
namespace {

constexpr size_t kNameBytesMax = 64;  // no longer name is looked at

size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitute = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string_view> names) {
  if (name.empty() || name.size() > kNameBytesMax) return "";
  std::string_view best;
  size_t best_edits = (name.size() + 2) / 3 + 1;
  for (const std::string_view candidate : names) {
    const size_t edits = Edits(name, candidate);
    if (edits < best_edits) {
      best = candidate;
      best_edits = edits;
    }
  }
  return std::string(best);
}

}  // namespace kvasir::names
