// ChooseMounts: which candidates are mounted where, and the reason of every other. Method: one
// table of snapshots; the properties that hold for all of them are checked on each.
#include "router/policy/choose_mounts.h"

#include <gtest/gtest.h>

#include <set>

namespace kvasir::policy {
namespace {

constexpr int64_t kDay = int64_t{24} * 3600 * 1000000;
constexpr int64_t kNow = 100 * kDay;

// A candidate of 100 tokens and slots with a hit of `score`, `days` old.
MountCandidate Hit(const char* name, double score, int64_t days) {
  return {.memory = name,
          .lexical_hit = true,
          .lexical_score = score,
          .create_us = kNow - days * kDay,
          .update_us = kNow - days * kDay,
          .logical_tokens = 100,
          .slots = 100};
}
MountCandidate Miss(const char* name, int64_t days) {
  MountCandidate candidate = Hit(name, 0, days);
  candidate.lexical_hit = false;
  return candidate;
}
MountCandidate With(MountCandidate candidate, Readiness readiness) {
  candidate.readiness = readiness;
  return candidate;
}
MountCandidate Sized(MountCandidate candidate, int64_t tokens, int64_t slots) {
  candidate.logical_tokens = tokens;
  candidate.slots = slots;
  return candidate;
}
MountCandidate Mounted(MountCandidate candidate) {
  candidate.already_mounted = true;
  return candidate;
}

struct Case {
  const char* name;
  std::vector<MountCandidate> candidates;
  bool first_turn = true;
  std::string mounts;    // names in order of position
  std::string left_out;  // "name:REASON", best first
  MountLimits limits = {.free_tokens = 1000, .first_position = 30};
};

std::vector<Case> Cases() {
  using enum Readiness;
  const MountLimits tight_slots = {.slot_budget = 250, .free_tokens = 1000, .first_position = 30};
  const MountLimits tight_room = {.free_tokens = 150, .first_position = 30};
  const MountLimits one = {.mounts_max = 1, .free_tokens = 1000, .first_position = 30};
  const MountLimits none = {.mounts_max = 0, .free_tokens = 1000, .first_position = 30};
  return {
      {"no candidate", {}, true, "", ""},
      {"hits stand oldest first",
       {Hit("a", 1, 1), Hit("b", 3, 9), Hit("c", 2, 5)},
       true,
       "b c a",
       ""},
      {"under four, BM25 order decides",
       {Hit("a", 1, 0), Hit("b", 3, 50)},
       true,
       "b",
       "a:MOUNT_LIMIT",
       one},
      {"under four, ties go to the newer",
       {Hit("a", 2, 7), Hit("b", 2, 3)},
       true,
       "b",
       "a:MOUNT_LIMIT",
       one},
      {"from four on, recency counts",
       {Hit("old", 2.02, 60), Hit("new", 2, 0), Miss("x", 5), Miss("y", 6)},
       true,
       "new",
       "old:MOUNT_LIMIT x:BELOW_GATE y:BELOW_GATE",
       one},
      {"from four on, a clear score beats recency",
       {Hit("old", 9, 60), Hit("new", 2, 0), Miss("x", 5), Miss("y", 6)},
       true,
       "old",
       "new:MOUNT_LIMIT x:BELOW_GATE y:BELOW_GATE",
       one},
      {"at most three",
       {Hit("a", 4, 4), Hit("b", 3, 3), Hit("c", 2, 2), Hit("d", 1, 1)},
       true,
       "a b c",
       "d:MOUNT_LIMIT"},
      {"a greeting mounts the most recent",
       {Miss("a", 9), Miss("b", 2)},
       true,
       "b",
       "a:BELOW_GATE"},
      {"a greeting later mounts nothing",
       {Miss("a", 9), Miss("b", 2)},
       false,
       "",
       "b:BELOW_GATE a:BELOW_GATE"},
      {"a greeting takes the most recent usable one",
       {Miss("a", 9), With(Miss("b", 2), kCorrupt)},
       true,
       "a",
       "b:STATE_CORRUPT"},
      {"a greeting that does not fit mounts nothing",
       {Miss("a", 9), Sized(Miss("b", 2), 2000, 2000)},
       true,
       "",
       "b:NO_ROOM a:BELOW_GATE"},
      {"with a hit, misses stay out", {Hit("a", 1, 9), Miss("b", 1)}, true, "a", "b:BELOW_GATE"},
      {"a later turn mounts hits", {Hit("a", 1, 9)}, false, "a", ""},
      {"what does not fit leaves its room to the next",
       {Sized(Hit("a", 3, 3), 100, 300), Hit("b", 2, 2), Hit("c", 1, 1)},
       true,
       "b c",
       "a:SLOT_BUDGET",
       tight_slots},
      {"room in front of the session is positions",
       {Hit("a", 3, 3), Hit("b", 2, 2)},
       false,
       "a",
       "b:NO_ROOM",
       tight_room},
      {"exact fit fits", {Sized(Hit("a", 3, 3), 1000, 4096)}, true, "a", ""},
      {"every state has its reason",
       {With(Hit("a", 5, 1), kNotReady), With(Hit("b", 4, 1), kModelMismatch),
        With(Hit("c", 3, 1), kCorrupt), Mounted(Hit("d", 2, 1)), With(Hit("e", 1, 1), kBuildFirst)},
       false,
       "e",
       "a:NOT_READY b:MODEL_MISMATCH c:STATE_CORRUPT d:ALREADY_MOUNTED"},
      {"no mount allowed", {Hit("a", 1, 1)}, true, "", "a:MOUNT_LIMIT", none},
  };
}

TEST(ChooseMounts, GivesMountsAndReasonsOfTheTable) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const MountChoice choice = ChooseMounts(c.candidates, c.limits, c.first_turn, kNow);
    std::string mounts, left_out;
    for (const ChosenMount& m : choice.mounts) {
      mounts += (mounts.empty() ? "" : " ") + c.candidates[m.candidate].memory;
    }
    for (const LeftOut& out : choice.left_out) {
      left_out += (left_out.empty() ? "" : " ") + c.candidates[out.candidate].memory + ":";
      left_out += UnmountedName(out.reason);
    }
    EXPECT_EQ(mounts, c.mounts);
    EXPECT_EQ(left_out, c.left_out);
  }
}

TEST(ChooseMounts, EveryCandidateIsInOneListAndPositionsHaveNoGap) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const MountChoice choice = ChooseMounts(c.candidates, c.limits, c.first_turn, kNow);
    std::set<size_t> seen;
    int64_t position = c.limits.first_position, slots = 0;
    for (const ChosenMount& m : choice.mounts) {
      EXPECT_TRUE(seen.insert(m.candidate).second);
      EXPECT_EQ(m.begin, position);
      EXPECT_EQ(m.tokens, c.candidates[m.candidate].logical_tokens);
      position += m.tokens;
      slots += c.candidates[m.candidate].slots;
    }
    for (const LeftOut& out : choice.left_out) EXPECT_TRUE(seen.insert(out.candidate).second);
    EXPECT_EQ(seen.size(), c.candidates.size());
    EXPECT_LE(position - c.limits.first_position, c.limits.free_tokens);
    EXPECT_LE(slots, c.limits.slot_budget);
  }
}

TEST(ChooseMounts, ALimitIsExplainedWithBothValues) {
  const MountChoice choice = ChooseMounts({Sized(Hit("a", 1, 1), 10, 1303)},
                                          {.slot_budget = 871, .free_tokens = 5000}, true, kNow);
  ASSERT_EQ(choice.left_out.size(), 1u);
  EXPECT_EQ(choice.left_out[0].detail, "1303 slots, 871 left");
}

TEST(ChooseMounts, ABuildIsAskedForWhereThereIsNoState) {
  const MountChoice choice = ChooseMounts({With(Hit("a", 1, 1), Readiness::kBuildFirst)},
                                          {.free_tokens = 500}, true, kNow);
  ASSERT_EQ(choice.mounts.size(), 1u);
  EXPECT_TRUE(choice.mounts[0].build_first);
}

TEST(MountNothing, GivesEveryCandidateTheReasonBestFirst) {
  const MountChoice choice = MountNothing({Hit("a", 1, 1), Hit("b", 2, 1)}, Unmounted::kModeOff);
  ASSERT_EQ(choice.left_out.size(), 2u);
  EXPECT_TRUE(choice.mounts.empty());
  EXPECT_EQ(choice.left_out[0].candidate, 1u);
  EXPECT_EQ(choice.left_out[1].reason, Unmounted::kModeOff);
}

}  // namespace
}  // namespace kvasir::policy
