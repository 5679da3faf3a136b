// SpecialMatcher: finds the texts of special tokens inside a text, leftmost first, then longest. A
// trie; the time is O(text bytes x longest special text) at worst and O(text bytes) in practice.
// Threads: immutable after the last Add.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace kvasir::tokenizer {

class SpecialMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = -1;
  };

  // An empty text is never found.
  void Add(std::string_view text, int32_t id);
  // The first match that begins at or after `from`.
  std::optional<Match> FindNext(std::string_view text, size_t from) const;
  // The token whose text is exactly `text`.
  std::optional<int32_t> FindWhole(std::string_view text) const;

 private:
  // The longest match that begins at `at`.
  std::optional<Match> MatchAt(std::string_view text, size_t at) const;

  std::vector<int32_t> ids_ = {-1};  // of the text that ends at a node; node 0 is the root
  absl::flat_hash_map<uint64_t, uint32_t> children_;  // node << 8 | byte -> node
  std::array<bool, 256> starts_{};                    // first bytes of any text
};

}  // namespace kvasir::tokenizer
