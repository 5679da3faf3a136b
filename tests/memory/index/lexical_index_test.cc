// LexicalIndex: scores worked by hand, and equality with an index built afresh after any changes.
#include "memory/index/lexical_index.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/rng.h"

namespace kvasir::index {
namespace {

MemoryId Id(uint8_t n) { return MemoryId{n}; }

// Three memories of known lengths:
//   1: turns "lake boat", "lake"              session length 3, one window of 3
//   2: date "december"; turn "boat boat car"  session length 4, one window of 3
//   3: turns of 1, 2, 1, 4 terms              session length 8, windows of 4 and 7
LexicalIndex Worked() {
  LexicalIndex index;
  index.SetTurn(Id(1), 1, {{"lake", 1}, {"boat", 1}});
  index.SetTurn(Id(1), 2, {{"lake", 1}});
  index.SetTurn(Id(2), kDateLine, {{"december", 1}});
  index.SetTurn(Id(2), 1, {{"boat", 2}, {"car", 1}});
  index.SetTurn(Id(3), 1, {{"tea", 1}});
  index.SetTurn(Id(3), 2, {{"tea", 2}});
  index.SetTurn(Id(3), 3, {{"cup", 1}});
  index.SetTurn(Id(3), 5, {{"lake", 4}});
  return index;
}

double Idf(double n, double df) { return std::log(1 + (n - df + 0.5) / (df + 0.5)); }
double Tf(double tf, double length, double mean) {
  return tf * 1.9 / (tf + 0.9 * (0.6 + 0.4 * length / mean));
}

TEST(LexicalIndex, ScoresAreThoseWorkedByHand) {
  // Sessions: 3, mean length (3+4+8)/3 = 5. Windows: 4 (3, 3, 4, 7 terms), mean 17/4.
  const auto hits = Worked().Query({{"lake", 1}});
  ASSERT_EQ(hits.size(), 2u);
  const double session1 = Idf(3, 2) * Tf(2, 3, 5), session3 = Idf(3, 2) * Tf(4, 8, 5);
  const double window1 = Idf(4, 2) * Tf(2, 3, 4.25), window3 = Idf(4, 2) * Tf(4, 7, 4.25);
  const bool first_is_1 = session1 + window1 > session3 + window3;
  const Hit& one = hits[first_is_1 ? 0 : 1];
  const Hit& three = hits[first_is_1 ? 1 : 0];
  EXPECT_EQ(one.id, Id(1));
  EXPECT_EQ(three.id, Id(3));
  // Each is a sum of at most four products of correctly rounded numbers of magnitude 1: 1e-14.
  EXPECT_NEAR(one.session_score, session1, 1e-14);
  EXPECT_NEAR(one.window_score, window1, 1e-14);
  EXPECT_NEAR(three.session_score, session3, 1e-14);
  EXPECT_NEAR(three.window_score, window3, 1e-14);
  EXPECT_NEAR(one.score, session1 + window1, 1e-14);  // three memories: the plain sum
  EXPECT_EQ(three.best_turn, 5);
}

TEST(LexicalIndex, FromFourMemoriesOnScoresAreStandardized) {
  LexicalIndex index = Worked();
  index.SetTurn(Id(4), 1, {{"sun", 1}});
  const auto hits = index.Query({{"lake", 1}});
  ASSERT_EQ(hits.size(), 2u);
  const auto z = [&](double Hit::*member, const Hit& hit) {
    const double a = hits[0].*member, b = hits[1].*member;
    const double mean = (a + b) / 4, variance = (a * a + b * b) / 4 - mean * mean;
    return (hit.*member - mean) / std::sqrt(variance);
  };
  for (const Hit& hit : hits) {
    EXPECT_NEAR(hit.score, z(&Hit::session_score, hit) + z(&Hit::window_score, hit), 1e-12);
  }
}

TEST(LexicalIndex, TheDateLineFindsTheSessionAndNoTurn) {
  const auto hits = Worked().Query({{"december", 1}});
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].id, Id(2));
  EXPECT_EQ(hits[0].window_score, 0);
  EXPECT_EQ(hits[0].best_turn, 0);
}

TEST(LexicalIndex, ATermTwiceInTheQueryCountsTwice) {
  const LexicalIndex index = Worked();
  EXPECT_NEAR(index.Query({{"car", 2}})[0].session_score,
              2 * index.Query({{"car", 1}})[0].session_score, 1e-14);
}

TEST(LexicalIndex, WhatIsRemovedIsNeverFoundAndLeavesNoTerm) {
  LexicalIndex index = Worked();
  index.Remove(Id(3));
  index.RemoveTurn(Id(1), 1);
  EXPECT_TRUE(index.Query({{"tea", 1}}).empty());
  ASSERT_EQ(index.Query({{"boat", 1}}).size(), 1u);
  index.RemoveTurn(Id(1), 2);
  index.Remove(Id(2));
  EXPECT_EQ(index.size(), 0u);
  EXPECT_EQ(index.terms(), 0u);
  EXPECT_TRUE(index.Query({{"boat", 1}, {"lake", 1}}).empty());
}

TEST(LexicalIndex, AfterAnyChangesItEqualsOneBuiltAfresh) {
  constexpr int kMemories = 7, kTurns = 9, kSteps = 400;
  const std::string words[] = {"a", "b", "c", "d", "e", "f"};
  LexicalIndex changed;
  std::map<MemoryId, std::map<int64_t, TermCounts>> truth;
  uint32_t step = 0;
  const auto draw = [&](uint32_t below) { return base::Philox(7, {step, below, 0, 0})[0] % below; };
  for (; step < kSteps; ++step) {
    const MemoryId id = Id(static_cast<uint8_t>(1 + draw(kMemories)));
    const int64_t turn = draw(kTurns);
    if (draw(10) == 0) {
      changed.Remove(id);
      truth.erase(id);
    } else if (draw(11) < 3) {
      changed.RemoveTurn(id, turn);
      if (truth.contains(id)) truth[id].erase(turn);
      if (truth.contains(id) && truth[id].empty()) truth.erase(id);
    } else {
      const TermCounts terms = {{words[draw(6)], 1 + draw(3)}, {words[draw(5)], 2}};
      changed.SetTurn(id, turn, terms);
      truth[id][turn] = terms;
    }
    LexicalIndex fresh;
    for (const auto& [memory, turns] : truth) {
      for (auto it = turns.rbegin(); it != turns.rend(); ++it) {
        fresh.SetTurn(memory, it->first, it->second);
      }
    }
    ASSERT_EQ(changed.size(), fresh.size());
    ASSERT_EQ(changed.terms(), fresh.terms());
    const auto a = changed.Query({{"a", 1}, {"c", 2}}), b = fresh.Query({{"a", 1}, {"c", 2}});
    ASSERT_EQ(a.size(), b.size()) << step;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].id, b[i].id) << step;
      ASSERT_EQ(a[i].score, b[i].score) << step;
      ASSERT_EQ(a[i].best_turn, b[i].best_turn) << step;
    }
  }
}

}  // namespace
}  // namespace kvasir::index
