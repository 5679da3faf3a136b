// Repl with its input as a text: every command, what is remembered at the end, and Ctrl-C while a
// reply comes.
#include "router/client/repl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/router/client/fake_server.h"

namespace kvasir::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ReplTest : public testing::Test {
 protected:
  RunResult Chat(const std::string& input, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), "chat");
    const RunResult result = RunKvasir(server_.address(), flags, input);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }

  FakeServer server_;
};

TEST_F(ReplTest, AnswersEachLineInOneSessionAndRemembersItAtTheEnd) {
  EXPECT_EQ(Chat("hi\nthere\n").out, "echo: hi\necho: there\n");
  EXPECT_EQ(server_.state().creates.size(), 1u);
  EXPECT_THAT(server_.state().calls, ElementsAre("CompactSession users/ann/sessions/s9"));
}

TEST_F(ReplTest, LeavesNoSessionBehindWhenNothingWasSaid) {
  Chat("/help\n\n/quit\nnot read\n");
  EXPECT_TRUE(server_.state().creates.empty());
  EXPECT_TRUE(server_.state().calls.empty());
}

TEST_F(ReplTest, DoesNotCloseASessionThatItDidNotMake) {
  Chat("hi\n", {"--session", "trip"});
  EXPECT_EQ(server_.state().chats.at(0).session(), "users/ann/sessions/trip");
  EXPECT_TRUE(server_.state().calls.empty());
}

TEST_F(ReplTest, WhyShowsTheRouteOfTheLastAnswer) {
  EXPECT_THAT(Chat("/why\n").err, HasSubstr("nothing was said yet"));
  EXPECT_THAT(Chat("hi\n/why\n").out, HasSubstr("used, from disk"));
}

TEST_F(ReplTest, ForgetTakesTheNumberThatMemoryListed) {
  const RunResult result = Chat("/memory\n/forget 2\n/forget 3\n/forget m7\n/forget\n");
  EXPECT_THAT(result.out, HasSubstr("Forgotten: the trip"));
  EXPECT_THAT(result.err, HasSubstr("/memory listed 2 memories"));
  EXPECT_THAT(server_.state().calls, ElementsAre("DeleteMemory users/ann/memories/m2",
                                                 "DeleteMemory users/ann/memories/m7"));
}

TEST_F(ReplTest, IncognitoHoldsUntilItIsSwitchedOff) {
  Chat("/incognito\none\n/incognito\ntwo\n");
  EXPECT_EQ(server_.state().chats.at(0).memory_mode(), v1::MEMORY_MODE_INCOGNITO);
  EXPECT_EQ(server_.state().chats.at(1).memory_mode(), v1::MEMORY_MODE_UNSPECIFIED);
  EXPECT_EQ(server_.state().creates.at(0).session().memory_mode(), v1::MEMORY_MODE_UNSPECIFIED);
}

TEST_F(ReplTest, NewClosesTheSessionAndBeginsAnother) {
  Chat("one\n/new\ntwo\n");
  EXPECT_EQ(server_.state().creates.size(), 2u);
  EXPECT_EQ(server_.state().calls.size(), 2u);
}

TEST_F(ReplTest, AFailedTurnAndAnUnknownCommandDoNotEndTheChat) {
  const RunResult result = Chat("fail\n/dance\nhi\n/session\n/stats\n");
  EXPECT_THAT(result.err, HasSubstr("a turn of the session is running"));
  EXPECT_THAT(result.err, HasSubstr("no command /dance"));
  EXPECT_THAT(result.out, HasSubstr("echo: hi\n"));
  EXPECT_THAT(result.out, HasSubstr("users/ann/sessions/s9"));
  EXPECT_THAT(result.out, HasSubstr("3.0 MiB on disk"));
}

TEST_F(ReplTest, ControlCharactersOfAReplyDoNotReachTheTerminal) {
  server_.state().delta = "\x1b]0;evil\x07";
  EXPECT_EQ(Chat("hi\n").out, "]0;evilhi\n");
}

TEST_F(ReplTest, CtrlCStopsTheReplyAndNotTheChat) {
  server_.state().hold_reply = true;
  std::istringstream in("one\n");
  std::ostringstream out, err;
  Output output(out, err, {});
  Connection connection(server_.address());
  const auto reader = MakeStreamReader(in);
  Interrupt interrupt;
  Client client{.connection = connection,
                .output = output,
                .input = *reader,
                .interrupt = &interrupt,
                .user = "ann"};
  Conversation conversation(client, "trip", {});
  const auto reply = conversation.Send("one", [](std::string_view) { std::raise(SIGINT); });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->finish_reason, v1::FINISH_REASON_CANCELLED);
  EXPECT_EQ(reply->text, "echo: ");
  EXPECT_THAT(server_.state().calls, Contains("CancelTurn users/ann/sessions/trip/turns/1"));
}

}  // namespace
}  // namespace kvasir::client
