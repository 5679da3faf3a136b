// Sessions and turns: what is acknowledged is there, also after a crash; one turn at a time;
// limits; pages give the exact set.
#include <gtest/gtest.h>

#include <thread>

#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

TEST(Turns, ATurnIsThereFromBeginToFinish) {
  World world;
  world.Create(kAnn, "s");
  const TurnRecord begun = world.Begin(kAnn, "s", "my boat is called Vega");
  EXPECT_EQ(begun.number, 1);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 1)->state, TurnRecord::State::kRunning);
  EXPECT_EQ(world.sessions().Get(kAnn, "s")->running_turn, 1);
  KVASIR_ASSERT_OK(world.Finish(kAnn, begun, "a fine name"));
  const auto turn = world.sessions().GetTurn(kAnn, "s", 1);
  ASSERT_TRUE(turn.ok()) << turn.status();
  EXPECT_EQ(turn->state, TurnRecord::State::kDone);
  EXPECT_EQ(turn->user_text, "my boat is called Vega");
  EXPECT_EQ(turn->reply_text, "a fine name");
  EXPECT_EQ(turn->prompt_ids, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(turn->finish_reason, "STOP");
  const auto session = world.sessions().Get(kAnn, "s");
  EXPECT_EQ(session->next_turn, 2);
  EXPECT_EQ(session->running_turn, 0);
  EXPECT_EQ(session->offset, kBaseTokens);
  EXPECT_EQ(session->date, "2026-12-01");
}

TEST(Turns, ASessionGoesOnOnlyWithTheModelThatItsTokensAreOf) {
  World world;
  world.Create(kAnn, "s");
  world.Create(kAnn, "without turns");
  world.Say(kAnn, "s", "one", "first");
  world.builder.model = TestModel(2);
  world.Reopen();
  TurnStart start;
  start.turn.user_text = "two";
  const auto refused = world.sessions().BeginTurn(kAnn, "s", start);
  EXPECT_EQ(base::Reason(refused.status()), "MODEL_MISMATCH") << refused.status();
  EXPECT_EQ(world.sessions().Get(kAnn, "s")->next_turn, 2);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 1)->reply_text, "first");  // can be read
  world.Say(kAnn, "without turns", "one", "first");
  world.builder.model = TestModel(1);
  world.Reopen();
  world.Say(kAnn, "s", "two", "second");
}

TEST(Turns, AcknowledgedTurnsOutliveTheProcessAndARunningOneHasFailed) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "one", "first");
  world.Begin(kAnn, "s", "two");
  world.Reopen();
  const auto turns = world.sessions().History(kAnn, "s");
  ASSERT_TRUE(turns.ok()) << turns.status();
  ASSERT_EQ(turns->size(), 2u);
  EXPECT_EQ(turns->at(0).reply_text, "first");
  EXPECT_EQ(turns->at(1).state, TurnRecord::State::kFailed);
  EXPECT_EQ(turns->at(1).user_text, "two");
  EXPECT_EQ(world.Say(kAnn, "s", "three", "third").number, 3);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Turns, ASecondTurnOfASessionIsRefusedWhileOneRuns) {
  World world;
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  const TurnRecord turn = world.Begin(kAnn, "s", "one");
  const auto second = world.sessions().BeginTurn(kAnn, "s", {});
  EXPECT_EQ(base::Reason(second.status()), "SESSION_BUSY");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAborted);
  const base::Status closing = world.sessions().Close(kAnn, "s").status();
  EXPECT_EQ(base::Reason(closing), "SESSION_BUSY");
  EXPECT_EQ(closing.code(), absl::StatusCode::kAborted);
  world.Say(kAnn, "t", "another session", "is free");
  KVASIR_ASSERT_OK(world.Finish(kAnn, turn, "done"));
  EXPECT_EQ(world.Finish(kAnn, turn, "twice").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 1)->reply_text, "done");
}

TEST(Turns, ARequestIsFoundByItsIdForADay) {
  World world;
  world.Create(kAnn, "s");
  TurnStart start;
  start.turn.request_id = "r1";
  start.turn.request_digest = base::Sha256(base::AsBytes("body"));
  start.offset = kBaseTokens;
  start.date = "2026-12-01";
  const auto turn = world.sessions().BeginTurn(kAnn, "s", start);
  ASSERT_TRUE(turn.ok());
  KVASIR_ASSERT_OK(world.Finish(kAnn, *turn, "reply"));
  for (int i = 0; i < 40; ++i) world.Say(kAnn, "s", "more", "talk");
  const auto found = world.sessions().FindRequest(kAnn, "s", "r1");
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->number, 1);
  EXPECT_EQ((*found)->request_digest, start.turn.request_digest);
  EXPECT_FALSE(world.sessions().FindRequest(kAnn, "s", "r2")->has_value());
  EXPECT_FALSE(world.sessions().FindRequest(kAnn, "s", "")->has_value());
  world.clock.Advance(24 * 3600 * kSecond);
  EXPECT_FALSE(world.sessions().FindRequest(kAnn, "s", "r1")->has_value());
}

TEST(Sessions, ANameIsTakenOncePerUserAndOneIsMadeWhenAbsent) {
  World world;
  world.Create(kAnn, "s");
  EXPECT_EQ(world.sessions().Create(kAnn, Named("s")).status().code(),
            absl::StatusCode::kAlreadyExists);
  world.Create(kBob, "s");
  EXPECT_EQ(world.Create(kAnn, "").name.size(), 32u);
  world.Create({.tenant = "other", .user = "ann"}, "s");
  EXPECT_EQ(world.sessions().Get({.tenant = "third", .user = "ann"}, "s").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Sessions, ManyThreadsThatCreateOneNameMakeOneSession) {
  World world;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { made += world.sessions().Create(kAnn, Named("s")).ok(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(world.sessions().List(kAnn, {})->items.size(), 1u);
}

TEST(Sessions, PagesGiveTheExactSetNewestFirstAlsoWhenSomeAreDeletedMeanwhile) {
  World world;
  std::vector<std::string> names;
  for (int i = 0; i < 23; ++i) names.push_back("s" + std::to_string(i));
  for (const std::string& name : names) world.Create(kAnn, name);
  world.Create(kBob, "not hers");
  std::vector<std::string> walked;
  ListPage page = PageOf(5);
  do {
    const auto listed = world.sessions().List(kAnn, page);
    ASSERT_TRUE(listed.ok()) << listed.status();
    ASSERT_LE(listed->items.size(), 5u);
    for (const SessionRecord& session : listed->items) walked.push_back(session.name);
    page.after = listed->next;
    // The entry that the position names goes away: the walk is not disturbed.
    if (walked.size() == 10) KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, walked.back()));
  } while (!page.after.empty());
  std::ranges::reverse(names);
  EXPECT_EQ(walked, names);
  EXPECT_EQ(world.sessions().List(kAnn, PageOf(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world.sessions().List(kAnn, PageOf(5, "x")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Turns, PagesGiveTheExactSetInOrder) {
  World world;
  world.Create(kAnn, "s");
  for (int i = 0; i < 11; ++i) world.Say(kAnn, "s", "question", "answer");
  std::vector<int64_t> walked;
  ListPage page = PageOf(4);
  do {
    const auto listed = world.sessions().ListTurns(kAnn, "s", page);
    ASSERT_TRUE(listed.ok()) << listed.status();
    for (const TurnRecord& turn : listed->items) walked.push_back(turn.number);
    page.after = listed->next;
  } while (!page.after.empty());
  EXPECT_EQ(walked, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 12).status().code(), absl::StatusCode::kNotFound);
}

TEST(Limits, EveryLimitOfSessionsIsEnforced) {
  World world([](TierOptions& options) {
    options.session_turns_max = 2;
    options.message_bytes_max = 10;
    options.sessions_per_user_max = 2;
  });
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  EXPECT_EQ(base::Reason(world.sessions().Create(kAnn, {}).status()), "LIMIT_REACHED");
  TurnStart start{.turn = {}, .offset = kBaseTokens, .date = "2026-12-01", .mounts_added = {}};
  start.turn.user_text = "12345678901";
  EXPECT_EQ(base::Reason(world.sessions().BeginTurn(kAnn, "s", start).status()), "LIMIT_REACHED");
  EXPECT_TRUE(world.sessions().History(kAnn, "s")->empty());
  for (int i = 0; i < 2; ++i) world.Say(kAnn, "s", "1234567890", "reply may be longer");
  start.turn.user_text = "3";
  EXPECT_EQ(base::Reason(world.sessions().BeginTurn(kAnn, "s", start).status()), "LIMIT_REACHED");
  KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, "t"));
  world.Create(kAnn, "u");  // room again
}

TEST(Sessions, UsersBeyondTheRamLimitAreServedFromTheStore) {
  World world([](TierOptions& options) { options.users_in_ram_max = 2; });
  for (int i = 0; i < 6; ++i) {
    const UserRef user{.user = "u" + std::to_string(i)};
    world.Create(user, "s");
    world.Learn(user, "s", "the lake of user " + std::to_string(i), "noted");
  }
  for (int i = 0; i < 6; ++i) {
    const UserRef user{.user = "u" + std::to_string(i)};
    EXPECT_EQ(world.Found(user, "lakes").size(), 1u);
    EXPECT_EQ(world.sessions().List(user, {})->items.size(), 1u);
  }
}

}  // namespace
}  // namespace kvasir::service
