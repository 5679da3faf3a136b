// PlanStep and FairShare: who gets the rows of a step, worked out by hand.
#include "engine/runtime/step_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/runtime/fair_share.h"

namespace kvasir::runtime {
namespace {

using Served = std::map<std::string, int64_t>;

std::vector<int64_t> Plan(const std::vector<PlanItem>& items, const PlanLimits& limits,
                          const Served& served) {
  return PlanStep(items, limits, [&](const std::string& key) {
    const auto found = served.find(key);
    return found == served.end() ? 0 : found->second;
  });
}

const std::string kAnn = "ann", kBob = "bob";

TEST(PlanStep, DecodesComeFirstAndPromptsShareTheRest) {
  EXPECT_EQ(Plan({{&kAnn, 500, false}, {&kBob, 1, true}, {&kBob, 1, true}}, {64, 256}, {}),
            (std::vector<int64_t>{62, 1, 1}));
}

TEST(PlanStep, TheKeyServedLeastGoesFirst) {
  EXPECT_EQ(Plan({{&kAnn, 500, false}, {&kBob, 500, false}}, {64, 64}, {{"ann", 10}}),
            (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(Plan({{&kAnn, 500, false}, {&kBob, 500, false}}, {64, 64}, {{"bob", 10}}),
            (std::vector<int64_t>{64, 0}));
}

TEST(PlanStep, OneKeyWithManyRequestsGetsNoMoreThanAnother) {
  std::vector<PlanItem> items(10, PlanItem{&kAnn, 1000, false});
  items.push_back({&kBob, 1000, false});
  FairShare share;
  for (const PlanItem& item : items) share.Enter(*item.key);
  for (int step = 0; step < 100; ++step) {
    const auto rows =
        PlanStep(items, {100, 64}, [&](const std::string& key) { return share.served(key); });
    for (size_t i = 0; i < items.size(); ++i) share.Charge(*items[i].key, rows[i]);
  }
  EXPECT_EQ(share.served("ann") + share.served("bob"), 100 * 100);
  EXPECT_NEAR(static_cast<double>(share.served("bob")), 5000, 64);  // within one chunk
}

TEST(PlanStep, APromptNeverGetsMoreThanItsChunkOrItsRest) {
  EXPECT_EQ(Plan({{&kAnn, 10, false}, {&kAnn, 500, false}}, {256, 100}, {}),
            (std::vector<int64_t>{10, 100}));
}

TEST(FairShare, IdleTimeIsNotSavedUp) {
  FairShare share;
  share.Enter("ann");
  share.Charge("ann", 1000);
  share.Enter("bob");
  EXPECT_EQ(share.served("bob"), 1000);
}

TEST(FairShare, LeavingAndComingBackPaysNoDebtOff) {
  FairShare share;
  share.Enter("ann");
  share.Enter("bob");
  share.Charge("ann", 1000);
  share.Charge("bob", 10);
  share.Leave("ann");
  share.Enter("ann");
  EXPECT_EQ(share.served("ann"), 1000);
}

TEST(FairShare, ForgetsKeysThatHaveNoEffect) {
  FairShare share;
  share.Enter("ann");
  for (int i = 0; i < 100; ++i) {
    share.Enter(std::to_string(i));
    share.Leave(std::to_string(i));
  }
  EXPECT_EQ(share.keys(), 1u);
  share.Leave("ann");
  EXPECT_EQ(share.keys(), 0u);
}

}  // namespace
}  // namespace kvasir::runtime
