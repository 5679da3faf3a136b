// LiveSessions and LiveTurn without an engine; goal: one turn holds a session at a time, deletions
// void what depends on them, readers that leave end a turn as its request_id says.
#include "router/server/live_sessions.h"

#include <gtest/gtest.h>

#include <thread>

namespace kvasir::server {
namespace {

using Admission = LiveSessions::Admission;

class LiveSessionsTest : public testing::Test {
 protected:
  std::shared_ptr<LiveTurn> Turn(const std::string& user, const std::string& session,
                                 const std::string& request_id = "", uint8_t digest = 0) {
    ChatCall call;
    call.user = {"default", user};
    call.session = session;
    call.request_id = request_id;
    call.request_digest.bytes[0] = digest;
    return std::make_shared<LiveTurn>(std::move(call), 0, &clock_, nullptr);
  }
  Admission Admit(const std::shared_ptr<LiveTurn>& turn) {
    const auto admitted = sessions_.Admit(turn);
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    return admitted.ok() ? admitted->admission : Admission::kBusy;
  }
  static store::RecordId Id(uint8_t value) { return {{value}}; }

  base::FakeClock clock_{1'000'000};
  LiveSessions sessions_{{.sessions_max = 2, .turns_max = 4}};
};

TEST_F(LiveSessionsTest, OneTurnHoldsASessionAndOneWaitsForItsState) {
  const auto first = Turn("ana", "s"), second = Turn("ana", "s"), third = Turn("ana", "s");
  EXPECT_EQ(Admit(first), Admission::kHolds);
  EXPECT_EQ(Admit(second), Admission::kBusy);
  EXPECT_EQ(sessions_.Running(first->call.user, "s"), first);
  sessions_.EndReply(*first);
  EXPECT_EQ(sessions_.Running(first->call.user, "s"), nullptr);
  EXPECT_EQ(Admit(second), Admission::kWaits);
  EXPECT_EQ(Admit(third), Admission::kBusy);
  SessionState state;
  state.saved_end = 77;
  EXPECT_EQ(sessions_.Release(*first, state), second);
  EXPECT_EQ(sessions_.Take(*second).saved_end, 77);
  EXPECT_EQ(sessions_.Release(*second, {}), nullptr);
  EXPECT_EQ(sessions_.held(), 0);
  EXPECT_EQ(Admit(Turn("bob", "s")), Admission::kHolds);
}

TEST_F(LiveSessionsTest, WaitUntilIdleReturnsWithTheLastReleaseOrItsTime) {
  EXPECT_TRUE(sessions_.WaitUntilIdle(0));
  const auto first = Turn("ana", "s"), second = Turn("bob", "s");
  Admit(first);
  Admit(second);
  EXPECT_FALSE(sessions_.WaitUntilIdle(0));
  sessions_.Release(*first, {});
  EXPECT_FALSE(sessions_.WaitUntilIdle(1));
  std::thread last([&] { sessions_.Release(*second, {}); });
  EXPECT_TRUE(sessions_.WaitUntilIdle(int64_t{3600} * 1'000'000));
  last.join();
}

TEST_F(LiveSessionsTest, TheSameRequestJoinsAndAnotherBodyIsRefused) {
  const auto first = Turn("ana", "s", "id", 1);
  EXPECT_EQ(Admit(first), Admission::kHolds);
  const auto again = sessions_.Admit(Turn("ana", "s", "id", 1));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->admission, Admission::kJoined);
  EXPECT_EQ(again->other, first);
  const auto other = sessions_.Admit(Turn("ana", "s", "id", 2));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(base::Reason(other.status()), "REQUEST_ID_REUSED");
}

TEST_F(LiveSessionsTest, TheNumberOfTurnsIsBounded) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Admit(Turn("ana", fmt::format("s{}", i))), Admission::kHolds);
  }
  const auto fifth = sessions_.Admit(Turn("ana", "s5"));
  EXPECT_EQ(fifth.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(base::Reason(fifth.status()), "QUEUE_FULL");
}

TEST_F(LiveSessionsTest, ADeletedMemoryCancelsTheTurnThatReadsItAndDropsItsState) {
  const auto turn = Turn("ana", "s"), bystander = Turn("ana", "other");
  EXPECT_EQ(Admit(turn), Admission::kHolds);
  EXPECT_EQ(Admit(bystander), Admission::kHolds);
  EXPECT_TRUE(sessions_.Attend(*turn, {{.memory = Id(1), .digest = {}, .mount = {}}}));
  EXPECT_TRUE(sessions_.Attend(*bystander, {{.memory = Id(2), .digest = {}, .mount = {}}}));
  sessions_.OnMemoryDeleted(turn->call.user, Id(1));
  EXPECT_TRUE(turn->cancelled());
  EXPECT_FALSE(bystander->cancelled());
  sessions_.EndReply(*turn);
  const auto next = Turn("ana", "s");
  EXPECT_EQ(Admit(next), Admission::kWaits);
  SessionState state;
  state.saved_end = 77;
  EXPECT_EQ(sessions_.Release(*turn, state), next);
  EXPECT_EQ(sessions_.Take(*next).saved_end, -1);
  // A turn that chose it just before does not begin.
  EXPECT_FALSE(sessions_.Attend(*next, {{.memory = Id(1), .digest = {}, .mount = {}}}));
}

TEST_F(LiveSessionsTest, AnErasedUserLosesEveryTurnAndNobodyElseDoes) {
  const auto one = Turn("ana", "s1"), two = Turn("ana", "s2"), bob = Turn("bob", "s1");
  for (const auto& turn : {one, two, bob}) EXPECT_EQ(Admit(turn), Admission::kHolds);
  sessions_.OnUserErased(one->call.user);
  EXPECT_TRUE(one->cancelled());
  EXPECT_TRUE(two->cancelled());
  EXPECT_FALSE(bob->cancelled());
}

TEST_F(LiveSessionsTest, WhenStoredWaitsForTheStateAndRefusesARunningReply) {
  const auto turn = Turn("ana", "s");
  int called = 0;
  const auto wait = [&] {
    return sessions_.WhenStored(turn->call.user, "s", [&called] { ++called; });
  };
  EXPECT_TRUE(wait());
  EXPECT_EQ(called, 1);
  EXPECT_EQ(Admit(turn), Admission::kHolds);
  EXPECT_FALSE(wait());
  sessions_.EndReply(*turn);
  EXPECT_TRUE(wait());
  EXPECT_EQ(called, 1);
  sessions_.Release(*turn, {});
  EXPECT_EQ(called, 2);
}

TEST_F(LiveSessionsTest, ATurnWithoutReadersEndsAtOnceOrAfterTheGraceOfItsRequestId) {
  constexpr int64_t kGrace = 30'000'000;
  const auto plain = Turn("ana", "s");
  plain->ReaderCame();
  plain->ReaderLeft(clock_.MonotonicMicros(), kGrace);
  EXPECT_TRUE(plain->cancelled());
  const auto with_id = Turn("ana", "t", "id");
  with_id->ReaderCame();
  with_id->ReaderLeft(clock_.MonotonicMicros(), kGrace);
  EXPECT_FALSE(with_id->cancelled());
  with_id->ReaderCame();
  clock_.Advance(2 * kGrace);
  with_id->CancelIfForgotten(clock_.MonotonicMicros());
  EXPECT_FALSE(with_id->cancelled());
  with_id->ReaderLeft(clock_.MonotonicMicros(), kGrace);
  clock_.Advance(kGrace);
  with_id->CancelIfForgotten(clock_.MonotonicMicros());
  EXPECT_TRUE(with_id->cancelled());
}

class CountingReader final : public TurnLog::Reader {
 public:
  void OnNews() override { ++news; }
  int news = 0;
};

TEST_F(LiveSessionsTest, ALogTellsItsReadersAndKeepsItsFirstEnd) {
  const auto turn = Turn("ana", "s");
  turn->log.Append(RouteInfo{});
  const auto reader = std::make_shared<CountingReader>();
  turn->log.Attach(reader);
  turn->log.Append(DeltaEvent{.text = "a", .token = 1, .logprob = std::nullopt});
  EXPECT_EQ(reader->news, 2);
  turn->log.Detach(reader.get());
  bool ended = false;
  turn->OnEnd([&] { ended = true; });
  EXPECT_EQ(turn->log.EndAfter(2), std::nullopt);
  turn->End(base::OkStatus());
  turn->End(base::Internal("too late"));
  EXPECT_TRUE(ended);
  EXPECT_EQ(reader->news, 2);
  EXPECT_EQ(turn->log.EndAfter(1), std::nullopt);
  ASSERT_TRUE(turn->log.EndAfter(2).has_value());
  EXPECT_TRUE(turn->log.EndAfter(2)->ok());
}

}  // namespace
}  // namespace kvasir::server
