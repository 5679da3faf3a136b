// Method: hand-worked scores. Goal: budgets are global, exact in sum, with a floor, and the same
// for the same scores.
#include "compaction/solver/budget.h"

#include <gtest/gtest.h>

#include <numeric>

namespace kvasir::compaction {
namespace {

VectorF Scores(std::initializer_list<float> values) {
  VectorF scores(static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), scores.begin());
  return scores;
}

TEST(GlobalBudgets, OneThresholdOverAllHeads) {
  // The four best of all six without a floor: 9, 8, 7 of the first head, 6 of the second.
  EXPECT_EQ(GlobalBudgets({Scores({9, 1, 8, 7}), Scores({6, 2})}, 4, 0),
            (std::vector<int64_t>{3, 1}));
}

TEST(GlobalBudgets, TheFloorKeepsAHeadThatNoQueryNeeds) {
  EXPECT_EQ(GlobalBudgets({Scores({9, 8, 7, 6}), Scores({0, 0, 0, 0})}, 4, 0),
            (std::vector<int64_t>{4, 0}));
  // A tenth of the mean budget of two is a slot.
  EXPECT_EQ(GlobalBudgets({Scores({9, 8, 7, 6}), Scores({0, 0, 0, 0})}, 4, 0.1),
            (std::vector<int64_t>{3, 1}));
}

TEST(GlobalBudgets, TheSumIsTheTotalOrEverySlot) {
  const std::vector<VectorF> scores = {Scores({5, 5, 5}), Scores({5}), Scores({})};
  for (int64_t total = 0; total <= 6; ++total) {
    const auto budgets = GlobalBudgets(scores, total, 0.5);
    EXPECT_EQ(std::accumulate(budgets.begin(), budgets.end(), int64_t{0}),
              std::min<int64_t>(total, 4))
        << total;
    for (size_t head = 0; head < scores.size(); ++head)
      EXPECT_LE(budgets[head], scores[head].size());
  }
}

TEST(GlobalBudgets, TiesGoToTheEarlierHead) {
  EXPECT_EQ(GlobalBudgets({Scores({1, 1}), Scores({1, 1}), Scores({1, 1})}, 3, 0),
            (std::vector<int64_t>{2, 1, 0}));
}

TEST(GlobalBudgets, ATotalBelowTheFloorsIsStillTheSum) {
  EXPECT_EQ(GlobalBudgets({Scores({1, 1}), Scores({2, 2}), Scores({3, 3})}, 2, 1),
            (std::vector<int64_t>{0, 0, 2}));
  EXPECT_TRUE(GlobalBudgets({}, 5, 0.1).empty());
}

}  // namespace
}  // namespace kvasir::compaction
