// Failures of kvasir: exit status 1 for a failed request, 2 for wrong arguments, with a message
// that says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/router/client/fake_server.h"

namespace kvasir::client {
namespace {

using testing::HasSubstr;

TEST(Failures, AServerThatIsNotThereIsExplained) {
  for (const char* command : {"doctor", "stats"}) {
    const RunResult result = RunKvasir("127.0.0.1:1", {command});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("no server answers at 127.0.0.1:1"));
    EXPECT_THAT(result.err, HasSubstr("./dev run"));
    EXPECT_THAT(result.err, HasSubstr("--server"));
  }
  EXPECT_EQ(RunKvasir("127.0.0.1:1", {"chat", "--once", "hi"}).status, 1);
  EXPECT_EQ(RunKvasir("127.0.0.1:1", {"chat"}, "hi\n").status, 1);
}

TEST(Failures, WrongArgumentsHaveStatusTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"sing"},
                                             {"session"},
                                             {"session", "show"},
                                             {"chat", "--memory", "perhaps"},
                                             {"chat", "--seed", "x"},
                                             {"-o", "xml", "stats"},
                                             {"stats", "--loud"}}) {
    const RunResult result = RunKvasir("127.0.0.1:1", arguments);
    EXPECT_EQ(result.status, 2) << testing::PrintToString(arguments);
    EXPECT_NE(result.err, "");
  }
}

TEST(Failures, WrongArgumentsAreNamedWithTheNearestRightOnes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"caht"}, "no command 'caht'; did you mean 'chat'?"},
      {{"session", "shwo", "s1"}, "no command 'shwo'; did you mean 'show'?"},
      {{"zzzzzz"}, "no command 'zzzzzz'; `kvasir --help` lists"},
      {{"chat", "--onec", "hi"}, "unknown option '--onec'; did you mean '--once'?"},
      {{"stats", "--outputs=json"}, "unknown option '--outputs'; did you mean '--output'?"},
      {{"session", "show", "s1", "s2"}, "'s2' is one argument too many"},
      {{}, "`kvasir COMMAND`, one of chat, session, memory, user, doctor, stats, help"},
      {{"chat", "--memory", "on"}, "--memory: 'on' is none of off, read, read_write, incognito"},
      {{"-o", "xml", "stats"}, "--output: 'xml' is none of table, json"},
      {{"memory", "why", "s1"}, "'s1' names no turn: say SESSION/N, such as s1/1"},
      {{"memory", "why", "s1/x"}, "SESSION/N"},
      {{"help", "caht"}, "did you mean 'chat'?"},
      {{"session", "show"}, "SESSION is required"}};
  for (const auto& [arguments, message] : cases) {
    const RunResult result = RunKvasir("127.0.0.1:1", arguments);
    EXPECT_EQ(result.status, 2) << testing::PrintToString(arguments);
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  for (const char* address : {"localhost", "localhost:", ":7437", "::1:80", "a:0", "a:65536"}) {
    const RunResult result = RunKvasir(address, {"stats"});
    EXPECT_EQ(result.status, 2) << address;
    EXPECT_THAT(result.err, HasSubstr("is not HOST:PORT"));
  }
}

TEST(Failures, HelpAndVersionAreCommandsToo) {
  EXPECT_THAT(RunKvasir("127.0.0.1:1", {"help"}).out, HasSubstr("kvasird, a language model"));
  EXPECT_THAT(RunKvasir("127.0.0.1:1", {"help", "session", "show"}).out,
              HasSubstr("a session with its turns"));
  const RunResult version = RunKvasir("127.0.0.1:1", {"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("kvasir [0-9.]+[^\n]*\n"));
}

TEST(Failures, HelpIsThereEverywhereAndHasStatusZero) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"-h"},
                                             {"chat", "-h"},
                                             {"session", "-h"},
                                             {"session", "show", "-h"},
                                             {"memory", "why", "-h"},
                                             {"user", "erase", "-h"},
                                             {"doctor", "-h"}}) {
    const RunResult result = RunKvasir("127.0.0.1:1", arguments);
    EXPECT_EQ(result.status, 0) << testing::PrintToString(arguments);
    EXPECT_THAT(result.out, HasSubstr("Usage"));
  }
}

TEST(Failures, WhatTheServerSaysIsPassedOnWithItsReason) {
  FakeServer server;
  const RunResult text = RunKvasir(server.address(), {"memory", "show", "gone"});
  EXPECT_EQ(text.status, 1);
  EXPECT_EQ(text.err,
            "kvasir: no memory gone: users/ann/memories/gone; `kvasir --user ann memory list` "
            "lists those there are (RESOURCE_NOT_FOUND)\n");
  const RunResult printed = RunKvasir(server.address(), {"-o", "json", "chat", "--once", "fail"});
  EXPECT_EQ(printed.status, 1);
  EXPECT_EQ(printed.out, "");
  const auto error = nlohmann::json::parse(printed.err)["error"];
  EXPECT_EQ(error["code"], "ABORTED");
  EXPECT_EQ(error["reason"], "SESSION_BUSY");
}

TEST(Failures, AMissingSessionAndAClosedOneSayWhatToDo) {
  FakeServer server;
  EXPECT_THAT(RunKvasir(server.address(), {"session", "show", "gone"}).err,
              HasSubstr("users/ann/sessions/gone; `kvasir --user ann session list` lists"));
  const RunResult closed = RunKvasir(server.address(), {"chat", "--once", "closed"});
  EXPECT_EQ(closed.status, 1);
  EXPECT_THAT(closed.err, HasSubstr("is closed; begin a new one"));
}

TEST(Failures, AStreamWithoutItsEndIsAFailure) {
  FakeServer server;
  const RunResult result = RunKvasir(server.address(), {"chat", "--once", "drop"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("without a finish event"));
}

TEST(Failures, DoctorFailsUnlessTheServerServes) {
  FakeServer server;
  server.state().serving = false;
  const RunResult result = RunKvasir(server.address(), {"doctor"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("NOT_SERVING"));
  const RunResult printed = RunKvasir(server.address(), {"-o", "json", "doctor"});
  EXPECT_EQ(printed.status, 1);
  EXPECT_EQ(printed.out, "{\"health\":\"NOT_SERVING\"}\n");
}

TEST(Failures, AConversationIsNoJsonDocument) {
  FakeServer server;
  const RunResult result = RunKvasir(server.address(), {"-o", "json", "chat"}, "hi\n");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--once"));
}

}  // namespace
}  // namespace kvasir::client
