#include "engine/tokenizer/special_matcher.h"

namespace kvasir::tokenizer {
namespace {

uint64_t Edge(uint32_t node, char byte) {
  return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
}

}  // namespace

void SpecialMatcher::Add(std::string_view text, int32_t id) {
  if (text.empty()) return;
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (const char byte : text) {
    const auto [edge, added] =
        children_.try_emplace(Edge(node, byte), static_cast<uint32_t>(ids_.size()));
    if (added) ids_.push_back(-1);
    node = edge->second;
  }
  ids_[node] = id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::FindNext(std::string_view text,
                                                              size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!starts_[static_cast<uint8_t>(text[at])]) continue;
    if (const auto match = MatchAt(text, at)) return match;
  }
  return std::nullopt;
}

std::optional<int32_t> SpecialMatcher::FindWhole(std::string_view text) const {
  const auto match = text.empty() ? std::nullopt : MatchAt(text, 0);
  if (!match || match->end != text.size()) return std::nullopt;
  return match->id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::MatchAt(std::string_view text,
                                                             size_t at) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t end = at; end < text.size();) {
    const auto edge = children_.find(Edge(node, text[end]));
    if (edge == children_.end()) break;
    node = edge->second;
    ++end;
    if (ids_[node] >= 0) longest = Match{at, end, ids_[node]};
  }
  return longest;
}

}  // namespace kvasir::tokenizer
