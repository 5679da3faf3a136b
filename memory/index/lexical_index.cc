#include "memory/index/lexical_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"

namespace kvasir::index {
namespace {

double InverseFrequency(int64_t documents, int64_t with_term) {
  const auto n = static_cast<double>(documents), df = static_cast<double>(with_term);
  return std::log(1 + (n - df + 0.5) / (df + 0.5));
}

double Saturated(double count, double length, double mean_length) {
  const double norm = 1 - kBm25B + kBm25B * length / mean_length;
  return count * (kBm25K1 + 1) / (count + kBm25K1 * norm);
}

// What makes a value standardized: (value − mean) / deviation.
struct Standard {
  double sum = 0, squares = 0;
  void Add(double value) {
    sum += value;
    squares += value * value;
  }
  double Apply(double value, size_t count) const {
    const double n = static_cast<double>(count), mean = sum / n;
    const double variance = squares / n - mean * mean;
    // Below this all values are equal but for rounding.
    if (variance <= 1e-12 * (squares / n)) return 0;
    return (value - mean) / std::sqrt(variance);
  }
};

// The windows that hold the turn at place `place` of `turns`: first places [first, last].
std::pair<int64_t, int64_t> WindowsAround(int64_t place, int64_t turns) {
  const int64_t last_start = std::max<int64_t>(0, turns - kWindowTurns);
  return {std::max<int64_t>(0, place - kWindowTurns + 1), std::min(place, last_start)};
}

int64_t Length(const TermCounts& terms) {
  int64_t length = 0;
  for (const auto& [term, count] : terms) length += count;
  return length;
}

}  // namespace

struct LexicalIndex::Scores {
  double session = 0;
  std::map<int64_t, double> windows;  // place of the first turn → score
  std::map<int64_t, double> turns;    // place → what its own terms are worth
};

int64_t LexicalIndex::PlaceOf(const Memory& memory, int64_t turn) {
  return std::ranges::lower_bound(memory.lengths, turn, {}, &TurnLength::turn) -
         memory.lengths.begin();
}

// Brings the sums of `memory` and of the index up to its turns.
void LexicalIndex::Measure(Memory& memory) {
  length_ -= memory.length;
  windows_ -= memory.windows;
  window_length_ -= memory.window_length;
  memory.length = memory.window_length = 0;
  const auto turns = std::ssize(memory.lengths);
  memory.windows = turns == 0 ? 0 : std::max<int64_t>(1, turns - kWindowTurns + 1);
  for (int64_t place = 0; place < turns; ++place) {
    const int64_t length = memory.lengths[place].length;
    const auto [first, last] = WindowsAround(place, turns);
    memory.length += length;
    memory.window_length += length * (last - first + 1);
  }
  if (const auto date = memory.turns.find(kDateLine); date != memory.turns.end()) {
    memory.length += Length(date->second);
  }
  length_ += memory.length;
  windows_ += memory.windows;
  window_length_ += memory.window_length;
}

void LexicalIndex::Forget(const MemoryId& id, Memory& memory, int64_t turn) {
  const auto found = memory.turns.find(turn);
  if (found == memory.turns.end()) return;
  for (const auto& [term, count] : found->second) {
    const auto posting = postings_.find(term);
    const auto of_memory = posting->second.find(id);
    of_memory->second.erase(turn);
    if (of_memory->second.empty()) posting->second.erase(of_memory);
    if (posting->second.empty()) postings_.erase(posting);
  }
  memory.turns.erase(found);
  if (turn != kDateLine) memory.lengths.erase(memory.lengths.begin() + PlaceOf(memory, turn));
}

void LexicalIndex::SetTurn(const MemoryId& id, int64_t turn, TermCounts terms) {
  KVASIR_CHECK(turn >= 0);
  Memory& memory = memories_[id];
  Forget(id, memory, turn);
  for (const auto& [term, count] : terms) postings_[term][id][turn] = count;
  if (turn != kDateLine) {
    memory.lengths.insert(memory.lengths.begin() + PlaceOf(memory, turn), {turn, Length(terms)});
  }
  memory.turns[turn] = std::move(terms);
  Measure(memory);
}

void LexicalIndex::RemoveTurn(const MemoryId& id, int64_t turn) {
  const auto found = memories_.find(id);
  if (found == memories_.end()) return;
  Forget(id, found->second, turn);
  Measure(found->second);
  if (found->second.turns.empty()) memories_.erase(found);
}

void LexicalIndex::Remove(const MemoryId& id) {
  const auto found = memories_.find(id);
  if (found == memories_.end()) return;
  while (!found->second.turns.empty())
    Forget(id, found->second, found->second.turns.begin()->first);
  Measure(found->second);
  memories_.erase(found);
}

void LexicalIndex::AddTerm(const std::string& term, double weight,
                           std::map<MemoryId, Scores>& scores) const {
  const auto posting = postings_.find(term);
  if (posting == postings_.end()) return;
  // Counts of the term per window, to know in how many windows it is before any is scored.
  std::map<MemoryId, std::map<int64_t, int64_t>> in_windows;
  int64_t windows_with_term = 0;
  for (const auto& [id, counts] : posting->second) {
    const Memory& memory = memories_.at(id);
    const auto turns = std::ssize(memory.lengths);
    std::map<int64_t, int64_t>& windows = in_windows[id];
    for (const auto& [turn, count] : counts) {
      if (turn == kDateLine) continue;
      const int64_t place = PlaceOf(memory, turn);
      const auto [first, last] = WindowsAround(place, turns);
      for (int64_t start = first; start <= last; ++start) windows[start] += count;
    }
    windows_with_term += static_cast<int64_t>(windows.size());
  }
  const double session_idf = InverseFrequency(static_cast<int64_t>(memories_.size()),
                                              static_cast<int64_t>(posting->second.size()));
  const double window_idf = InverseFrequency(windows_, windows_with_term);
  const double mean_session = static_cast<double>(length_) / static_cast<double>(memories_.size());
  const double mean_window =
      static_cast<double>(window_length_) / static_cast<double>(std::max<int64_t>(1, windows_));
  for (const auto& [id, counts] : posting->second) {
    const Memory& memory = memories_.at(id);
    Scores& score = scores[id];
    int64_t in_session = 0;
    for (const auto& [turn, count] : counts) in_session += count;
    score.session += weight * session_idf *
                     Saturated(static_cast<double>(in_session), static_cast<double>(memory.length),
                               mean_session);
    for (const auto& [start, count] : in_windows.at(id)) {
      int64_t length = 0;
      for (int64_t i = start; i < start + kWindowTurns && i < std::ssize(memory.lengths); ++i) {
        length += memory.lengths[i].length;
      }
      score.windows[start] +=
          weight * window_idf *
          Saturated(static_cast<double>(count), static_cast<double>(length), mean_window);
    }
    for (const auto& [turn, count] : counts) {
      if (turn == kDateLine) continue;
      const int64_t place = PlaceOf(memory, turn);
      score.turns[place] +=
          weight * window_idf *
          Saturated(static_cast<double>(count), static_cast<double>(memory.lengths[place].length),
                    mean_window);
    }
  }
}

std::vector<Hit> LexicalIndex::Query(const TermCounts& query) const {
  std::map<MemoryId, Scores> scores;
  for (const auto& [term, count] : query) AddTerm(term, count, scores);
  std::vector<Hit> hits;
  Standard sessions, windows;
  for (const auto& [id, score] : scores) {
    Hit hit{.id = id, .session_score = score.session};
    int64_t best_start = -1;
    for (const auto& [start, value] : score.windows) {
      if (value > hit.window_score) hit.window_score = value, best_start = start;
    }
    double best_value = 0;
    for (auto it = score.turns.lower_bound(best_start);
         best_start >= 0 && it != score.turns.end() && it->first < best_start + kWindowTurns;
         ++it) {
      if (it->second <= best_value) continue;
      best_value = it->second;
      hit.best_turn = memories_.at(id).lengths[it->first].turn;
    }
    sessions.Add(hit.session_score);
    windows.Add(hit.window_score);
    hits.push_back(hit);
  }
  for (Hit& hit : hits) {
    hit.score = size() < kStandardizedMin ? hit.session_score + hit.window_score
                                          : sessions.Apply(hit.session_score, size()) +
                                                windows.Apply(hit.window_score, size());
  }
  std::ranges::stable_sort(hits, [](const Hit& a, const Hit& b) { return a.score > b.score; });
  return hits;
}

}  // namespace kvasir::index
