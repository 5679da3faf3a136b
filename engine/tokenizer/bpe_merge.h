// The merge loop of byte-pair encoding, shared by both algorithms: again and again the best pair of
// neighbours in the whole sequence becomes one symbol; of equally good pairs the leftmost. A heap
// of candidates and a linked list of symbols: O(n log n) for n symbols, whatever the text. Source:
// Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units", ACL 2016,
// section 3.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

namespace kvasir::tokenizer {

struct Symbol {
  int32_t id = -1;   // the token, or -1 when this text is none
  size_t begin = 0;  // its bytes; begin == end once it has been merged into its left neighbour
  size_t end = 0;
};

struct Merge {
  double key = 0;   // smaller is better
  int32_t id = -1;  // of the joined symbol
};

// Merges neighbours of `symbols` until no pair can be merged; what is left has begin < end.
// find(left, right) gives the merge of two neighbours, if there is one: std::optional<Merge>.
template <typename Find>
void MergeSymbols(std::vector<Symbol>& symbols, const Find& find) {
  struct Candidate {
    Merge merge;
    size_t left, right;
    size_t bytes;  // of both when found: symbols only grow, so another size means that it is stale
  };
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.merge.key != b.merge.key ? a.merge.key > b.merge.key : a.left > b.left;
  };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(worse)> heap(worse);
  const size_t n = symbols.size();
  std::vector<size_t> previous(n), next(n);
  const auto consider = [&](size_t left, size_t right) {
    const std::optional<Merge> merge = find(symbols[left], symbols[right]);
    if (merge) heap.push({*merge, left, right, symbols[right].end - symbols[left].begin});
  };
  for (size_t i = 0; i < n; ++i) {
    previous[i] = i - 1;  // wraps for the first, which is never followed
    next[i] = i + 1;
    if (i + 1 < n) consider(i, i + 1);
  }
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Symbol& left = symbols[best.left];
    Symbol& right = symbols[best.right];
    const bool alive = left.begin < left.end && right.begin < right.end;
    if (!alive || next[best.left] != best.right || right.end - left.begin != best.bytes) continue;
    left.id = best.merge.id;
    left.end = right.end;
    right.begin = right.end;
    next[best.left] = next[best.right];
    if (next[best.left] < n) previous[next[best.left]] = best.left;
    if (best.left > 0) consider(previous[best.left], best.left);
    if (next[best.left] < n) consider(best.left, next[best.left]);
  }
}

}  // namespace kvasir::tokenizer
