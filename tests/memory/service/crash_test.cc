// Crashes: a process under load is killed at random moments; what it acknowledged is there, what it
// deleted is not, and all records agree. The moment is drawn as a number of acknowledged steps.
#include <gtest/gtest.h>

#include <sstream>

#include "engine/base/rng.h"
#include "tests/memory/service/world.h"
#include "tests/support/killed_child.h"

namespace kvasir::service {
namespace {

// What the child acknowledged over all rounds.
struct Acknowledged {
  std::map<std::pair<std::string, std::string>, int64_t> turns, learned;  // of (user, session)
  std::set<std::pair<std::string, std::string>> deleted;

  void Add(const std::string& line) {
    std::istringstream words(line);
    std::string what, user, session;
    int64_t number = 0;
    words >> what >> user >> session >> number;
    if (what == "turn") turns[{user, session}] = number;
    if (what == "learned") learned[{user, session}] = number;
    if (what == "deleted") deleted.insert({user, session});
  }
};

void ExpectAllThere(World& world, const Acknowledged& all) {
  for (const auto& [key, number] : all.turns) {
    const UserRef user{.user = key.first};
    const auto turns = world.sessions().History(user, key.second);
    if (all.deleted.contains(key)) {
      EXPECT_EQ(turns.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    // A deletion that was under way may have gone through.
    if (!turns.ok() && number == 4) continue;
    ASSERT_TRUE(turns.ok()) << turns.status() << " " << key.second;
    ASSERT_GE(std::ssize(*turns), number);
    for (int64_t i = 1; i <= number; ++i) {
      EXPECT_EQ(turns->at(static_cast<size_t>(i - 1)).reply_text, "answer " + std::to_string(i));
      EXPECT_EQ(turns->at(static_cast<size_t>(i - 1)).state, TurnRecord::State::kDone);
    }
    const auto learned = all.learned.find(key);
    if (learned == all.learned.end()) continue;
    const auto session = world.sessions().Get(user, key.second);
    ASSERT_TRUE(session.ok() && session->memory);
    const auto memory = world.memories().Get(user, session->memory->Hex());
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_GE(memory->source_turns.back(), learned->second);
    EXPECT_TRUE(world.Load(user, *memory).ok());
  }
}

void KillRounds(int rounds) {
  World world;
  Acknowledged all;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    world.Close();
    const uint32_t draw = base::Philox(20261201, {static_cast<uint32_t>(round), 0, 0, 0})[0];
    const auto lines =
        kvasir::testing::RunAndKill("service_crash_child", {world.options.dir}, 1 + draw % 40);
    for (const std::string& line : lines) all.Add(line);
    world.Open();
    EXPECT_EQ(world.Findings(Repair::kNo), std::vector<std::string>());
    ExpectAllThere(world, all);
  }
  EXPECT_GT(all.turns.size(), 0u);
}

TEST(Crash, NothingAcknowledgedIsLostIn10Kills) { KillRounds(10); }
TEST(CrashSlow, NothingAcknowledgedIsLostIn50Kills) { KillRounds(50); }

}  // namespace
}  // namespace kvasir::service
