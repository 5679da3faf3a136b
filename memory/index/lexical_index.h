// LexicalIndex: BM25 over one user's memories, in RAM, built from the term counts of their turns.
//
// Two kinds of documents, each with its own statistics: whole sessions (date line and all turns)
// and windows of 3 consecutive turns (a shorter session is one window). A memory's score is BM25* =
// z(BM25 of its session) + z(BM25 of its best window), z over all memories of the index; with fewer
// than kStandardizedMin memories z means nothing and the plain sum is taken.
// Source: Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond", 2009.
//
// Results depend on what is in the index alone, not on the order in which it came. Threads: reads
// concurrently, changes alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/index/term_counts.h"

namespace kvasir::index {

using MemoryId = std::array<uint8_t, 16>;

inline constexpr double kBm25K1 = 0.9;
inline constexpr double kBm25B = 0.4;
inline constexpr int kWindowTurns = 3;
inline constexpr size_t kStandardizedMin = 4;
inline constexpr int64_t kDateLine = 0;  // the date line's place among the turns

// A memory with a term in common with the query.
struct Hit {
  MemoryId id{};
  double score = 0;          // BM25*, or the sum of the next two in a small index
  double session_score = 0;  // BM25, above 0
  double window_score = 0;   // BM25 of the best window; 0 when only the date line fits
  int64_t best_turn = 0;     // the turn of the best window that fits best; 0: none
};

class LexicalIndex {
 public:
  // Sets the terms of turn `turn` of `id` (kDateLine: of its date line), replacing older ones.
  // REQUIRES: turn ≥ 0.
  void SetTurn(const MemoryId& id, int64_t turn, TermCounts terms);
  // Removes what is there. Complexity of all: terms × log(memories).
  void RemoveTurn(const MemoryId& id, int64_t turn);
  void Remove(const MemoryId& id);

  // All memories with a term in common, best first, equal ones by id. A term that stands in the
  // query twice counts twice. Complexity: postings of the query's terms + memories.
  std::vector<Hit> Query(const TermCounts& query) const;

  size_t size() const { return memories_.size(); }
  bool contains(const MemoryId& id) const { return memories_.contains(id); }
  // Terms known; 0 when the index is empty.
  size_t terms() const { return postings_.size(); }

 private:
  struct TurnLength {
    int64_t turn = 0;
    int64_t length = 0;  // terms in it
  };
  // One memory's turns; all else follows from them.
  struct Memory {
    std::map<int64_t, TermCounts> turns;  // the date line included
    std::vector<TurnLength> lengths;      // by turn, the date line left out
    int64_t length = 0;                   // terms in all, the date line included
    int64_t windows = 0;
    int64_t window_length = 0;  // summed over the windows
  };
  struct Scores;

  void Measure(Memory& memory);
  void Forget(const MemoryId& id, Memory& memory, int64_t turn);
  static int64_t PlaceOf(const Memory& memory, int64_t turn);
  void AddTerm(const std::string& term, double weight, std::map<MemoryId, Scores>& scores) const;

  std::map<MemoryId, Memory> memories_;
  // term → memory → turn → count
  std::unordered_map<std::string, std::map<MemoryId, std::map<int64_t, uint32_t>>> postings_;
  int64_t length_ = 0;         // of all sessions
  int64_t windows_ = 0;        // of all memories
  int64_t window_length_ = 0;  // of all windows
};

}  // namespace kvasir::index
