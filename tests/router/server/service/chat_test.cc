// Chat over a loopback channel to a whole server with the tiny model; goal: events in order, exact
// accounting, and replies that do not depend on where the state came from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

TEST(ServiceChat, EventsComeInOrderAndAreNumbered) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  const Reply reply = server.Say(session, "Hello there", 12);
  ASSERT_GE(reply.events.size(), 4u);
  EXPECT_TRUE(reply.events.front().has_route());
  EXPECT_TRUE(reply.events[reply.events.size() - 2].has_usage());
  EXPECT_TRUE(reply.events.back().has_finish());
  for (size_t i = 0; i < reply.events.size(); ++i) {
    EXPECT_EQ(reply.events[i].seq(), static_cast<int>(i) + 1);
    EXPECT_EQ(reply.events[i].turn(), session + "/turns/1");
  }
  EXPECT_EQ(reply.usage.output_tokens(), static_cast<int>(reply.ids.size()));
  EXPECT_EQ(reply.logprobs.size(), reply.ids.size());
  EXPECT_EQ(reply.route.memory_mode(), v1::MEMORY_MODE_READ_WRITE);
  EXPECT_EQ(reply.usage.session_cached_tokens(), 0);
  EXPECT_GT(reply.usage.computed_tokens(), 0);

  v1::GetTurnRequest get;
  get.set_name(reply.turn);
  v1::Turn turn;
  ASSERT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::GetTurn, get, &turn).ok());
  EXPECT_EQ(turn.text(), reply.text);
  EXPECT_EQ(turn.message(), "Hello there");
  EXPECT_EQ(turn.finish_reason(), reply.finish);
  EXPECT_EQ(turn.seed(), 7);
  EXPECT_EQ(turn.usage().computed_tokens(), reply.usage.computed_tokens());
}

TEST(ServiceChat, TheSecondTurnComputesItsOwnTokensOnly) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  const Reply first = server.Say(session, "Hello there");
  const Reply second = server.Say(session, "And then");
  EXPECT_EQ(second.usage.computed_tokens(), UserTurnTokens("And then"));
  // What the first turn left: its prompt, its reply and what closes it.
  const int closing = second.usage.session_cached_tokens() - first.usage.computed_tokens() -
                      first.usage.output_tokens();
  EXPECT_GE(closing, 1);
  EXPECT_LE(closing, 2);
  v1::GetStatsRequest request;
  v1::Stats stats;
  ASSERT_TRUE(Call(server.admin(), &v1::AdminService::Stub::GetStats, request, &stats).ok());
  EXPECT_EQ(stats.finished_turns(), 2);
  EXPECT_EQ(stats.computed_tokens(),
            first.usage.computed_tokens() + second.usage.computed_tokens());
  EXPECT_EQ(stats.session_cached_tokens(), second.usage.session_cached_tokens());
}

// Pages for about two sessions: the others are evicted and restored from their checkpoints.
TEST(ServiceChat, SessionsThatWereEvictedGoOnWithTheSameBits) {
  constexpr int kSessions = 6, kTurns = 3;
  const auto run = [](int64_t kv_bytes) {
    const TempFolder data;
    TinyServer server(data.path(), [&](Options& options) { options.kv_bytes_max = kv_bytes; });
    std::vector<std::string> sessions;
    for (int i = 0; i < kSessions; ++i) {
      sessions.push_back(server.NewSession(fmt::format("user{}", i)));
    }
    std::vector<std::vector<float>> logprobs;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (const std::string& session : sessions) {
        const Reply reply = server.Say(session, fmt::format("Turn {} of mine", turn), 20);
        logprobs.push_back(reply.logprobs);
        EXPECT_EQ(reply.usage.session_cached_tokens() > 0, turn > 0);
      }
    }
    return logprobs;
  };
  EXPECT_EQ(run(2 << 20), run(256 << 20));
}

// The same three turns on one server, and with a new server for each turn.
TEST(ServiceChat, ASessionThatIsResumedAfterARestartGivesTheSameBits) {
  const std::vector<std::string> messages = {"My cat is called Tofu", "What did I say?", "Again?"};
  std::vector<Reply> expected;
  {
    const TempFolder data;
    TinyServer server(data.path());
    const std::string session = server.NewSession("ana", v1::MEMORY_MODE_UNSPECIFIED, "s1");
    for (const auto& message : messages) expected.push_back(server.Say(session, message, 40));
  }
  const TempFolder data;
  std::string session;
  for (size_t i = 0; i < messages.size(); ++i) {
    TinyServer server(data.path());
    if (i == 0) session = server.NewSession("ana", v1::MEMORY_MODE_UNSPECIFIED, "s1");
    const Reply reply = server.Say(session, messages[i], 40);
    EXPECT_EQ(reply.ids, expected[i].ids) << "turn " << i + 1;
    EXPECT_EQ(reply.logprobs, expected[i].logprobs) << "turn " << i + 1;
    EXPECT_EQ(reply.usage.computed_tokens(), expected[i].usage.computed_tokens());
    EXPECT_EQ(reply.usage.session_cached_tokens(), expected[i].usage.session_cached_tokens());
    EXPECT_TRUE(server.Consistent());
  }
}

TEST(ServiceChat, StopStringsEndTheReplyAndDoNotShow) {
  const TempFolder data;
  TinyServer server(data.path());
  const Reply whole = server.Say(server.NewSession("ana"), "Hello there", 30);
  ASSERT_GT(whole.text.size(), 4u);
  v1::ChatRequest request = TinyServer::Request(server.NewSession("bob"), "Hello there", 30);
  request.add_stop(whole.text.substr(2, 2));
  const Reply stopped = server.Chat(request);
  EXPECT_EQ(stopped.finish, v1::FINISH_REASON_STOP);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find(whole.text.substr(2, 2))));
}

TEST(ServiceChat, AReplyThatFillsTheContextSaysSoAndTheNextTurnIsRefused) {
  const TempFolder data;
  TinyServer server(data.path(), [](Options& options) { options.context_tokens = 256; });
  const std::string session = server.NewSession("ana");
  Reply reply;
  for (int i = 0; i < 20 && reply.finish != v1::FINISH_REASON_CONTEXT_LENGTH; ++i) {
    reply = server.Chat(TinyServer::Request(session, "More", 1000));
    ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  }
  EXPECT_EQ(reply.finish, v1::FINISH_REASON_CONTEXT_LENGTH);
  reply = server.Chat(TinyServer::Request(session, "More", 1000));
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(reply.reason, "CONTEXT_LENGTH_EXCEEDED");
}

}  // namespace
}  // namespace kvasir::server
