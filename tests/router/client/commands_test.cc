// Commands of kvasir against a fake server: what they send, what they print in both formats, their
// exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/router/client/fake_server.h"

namespace kvasir::client {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class CommandsTest : public testing::Test {
 protected:
  // Runs the command, which must succeed, and returns what it printed.
  std::string Print(std::vector<std::string> arguments, const std::string& input = "") {
    const RunResult result = RunKvasir(server_.address(), std::move(arguments), input);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  json PrintJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-o", "json"});
    return json::parse(Print(std::move(arguments)));
  }

  FakeServer server_;
};

TEST_F(CommandsTest, ChatOnceAsJsonIsTheObjectOfTheApi) {
  const json reply = PrintJson({"chat", "--once", "where did I go?"});
  EXPECT_EQ(reply["session"], "users/ann/sessions/s9");
  EXPECT_EQ(reply["turn"], "users/ann/sessions/s9/turns/1");
  EXPECT_EQ(reply["text"], "echo: where did I go?");
  EXPECT_EQ(reply["finish_reason"], "FINISH_REASON_STOP");
  EXPECT_EQ(reply["usage"]["memory_tokens"], 1324);  // a number, not a text
  EXPECT_EQ(reply["usage"]["draft_tokens"], 0);      // defaults are there
  EXPECT_EQ(reply["route"]["mounts"][0]["restore_ms"], 12.25);
  EXPECT_EQ(reply["route"]["unused"][0]["reason"], "MISS_REASON_SLOT_BUDGET");
}

TEST_F(CommandsTest, ChatOncePrintsTheReplyAndNothingElseWhenPiped) {
  EXPECT_EQ(Print({"chat", "--once", "hi"}), "echo: hi\n");
  EXPECT_EQ(RunKvasir(server_.address(), {"chat", "--once", "hi"}).err, "");
}

TEST_F(CommandsTest, ChatSendsWhatItsFlagsSay) {
  Print({"chat", "--once", "hi", "--session", "trip", "--memory", "incognito", "--temperature",
         "0.5", "--seed", "7", "--max-tokens", "33"});
  const v1::ChatRequest chat = server_.state().chats.at(0);
  EXPECT_EQ(chat.session(), "users/ann/sessions/trip");
  EXPECT_EQ(chat.memory_mode(), v1::MEMORY_MODE_INCOGNITO);
  EXPECT_EQ(chat.temperature(), 0.5);
  EXPECT_EQ(chat.seed(), 7);
  EXPECT_EQ(chat.max_output_tokens(), 33);
  EXPECT_TRUE(server_.state().creates.empty());
  Print({"chat", "--once", "hi"});
  EXPECT_FALSE(server_.state().chats.at(1).has_temperature());
  EXPECT_FALSE(server_.state().chats.at(1).has_seed());
}

TEST_F(CommandsTest, ChatMakesTheSessionThatDoesNotExist) {
  Print({"chat", "--once", "hi", "--session", "gone", "--memory", "read"});
  EXPECT_EQ(server_.state().creates.at(0).session_id(), "gone");
  EXPECT_EQ(server_.state().creates.at(0).session().memory_mode(), v1::MEMORY_MODE_READ);
}

TEST_F(CommandsTest, ListsShowEveryPage) {
  EXPECT_EQ(Print({"session", "list"}),
            "session  state   turns  mode         created               title\n"
            "s1       closed      3  unspecified  2023-11-14 22:13:20Z  Reise [31m nach Gävle\n"
            "s2       closed     12  unspecified  2023-11-14 22:13:20Z  Reise [31m nach Gävle\n");
  EXPECT_EQ(PrintJson({"session", "list"})["sessions"].size(), 2u);
  const json memories = PrintJson({"memory", "list"});
  EXPECT_EQ(memories["memories"][1]["name"], "users/ann/memories/m2");
  EXPECT_EQ(memories["next_page_token"], "");
  EXPECT_THAT(Print({"memory", "list"}), HasSubstr("m2        1303  3.0 MiB"));
}

TEST_F(CommandsTest, SessionShowHasItsTurns) {
  const json session = PrintJson({"session", "show", "s1"});
  EXPECT_EQ(session["session"]["name"], "users/ann/sessions/s1");
  EXPECT_EQ(session["turns"][0]["text"], "echo: hello");
  EXPECT_THAT(Print({"session", "show", "s1"}),
              HasSubstr("1 > hello\necho: hello\n[stop]\n\n2 > (deleted)\n"));
}

TEST_F(CommandsTest, SessionCloseWaitsForItsMemory) {
  EXPECT_EQ(Print({"session", "close", "s1"}), "Remembered as users/ann/memories/m1\n");
  EXPECT_EQ(server_.state().waits, 2);
  const json done = PrintJson({"session", "close", "users/ann/sessions/s1"});
  EXPECT_EQ(done["response"]["memory"], "users/ann/memories/m1");
}

TEST_F(CommandsTest, DeleteNamesWhatItDeletes) {
  Print({"session", "delete", "s1"});
  Print({"memory", "delete", "users/ann/memories/m1"});
  EXPECT_THAT(server_.state().calls, ElementsAre("DeleteSession users/ann/sessions/s1",
                                                 "DeleteMemory users/ann/memories/m1"));
}

TEST_F(CommandsTest, MemoryShowHasTheText) {
  EXPECT_THAT(Print({"memory", "show", "m1"}), HasSubstr("\nuser: we go to Gävle\n"));
  EXPECT_EQ(PrintJson({"memory", "show", "m1"})["source_text"], "user: we go to Gävle");
}

TEST_F(CommandsTest, MemorySearchSendsQueryAndCount) {
  EXPECT_THAT(Print({"memory", "search", "Gävle", "--top-k", "3"}), HasSubstr("2.50"));
  EXPECT_THAT(server_.state().calls, ElementsAre("SearchMemories Gävle 3"));
}

TEST_F(CommandsTest, MemorySearchWithoutAHitSaysSo) {
  EXPECT_EQ(Print({"memory", "search", "nothing"}), "No memory fits.\n");
  EXPECT_EQ(PrintJson({"memory", "search", "nothing"})["results"], json::array());
}

TEST_F(CommandsTest, MemoryDeleteSaysThatTheTurnsGoToo) {
  EXPECT_THAT(Print({"help", "memory"}), HasSubstr("the text of its session's turns"));
}

TEST_F(CommandsTest, MemoryWhyExplainsEveryCandidate) {
  const std::string text = Print({"memory", "why", "s1/1"});
  EXPECT_THAT(text, HasSubstr("used, from disk"));
  EXPECT_THAT(text, HasSubstr("slot budget (1303 slots, 871 left)"));
  EXPECT_THAT(server_.state().calls, ElementsAre("ExplainRoute users/ann/sessions/s1/turns/1"));
}

TEST_F(CommandsTest, UserEraseWaitsForTheErasure) {
  EXPECT_EQ(PrintJson({"user", "erase", "--yes"})["name"], "erasures/e1");
  EXPECT_THAT(server_.state().calls, ElementsAre("EraseUser users/ann"));
  EXPECT_THAT(Print({"user", "show"}), HasSubstr("memories    2"));
}

TEST_F(CommandsTest, UserEraseRefusesWhereNobodyCanBeAsked) {
  const RunResult result = RunKvasir(server_.address(), {"user", "erase"}, "ann\n");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("nothing was erased"));
  EXPECT_THAT(result.err, HasSubstr("add --yes"));
  EXPECT_TRUE(server_.state().calls.empty());
}

TEST_F(CommandsTest, DoctorAndStatsDescribeTheServer) {
  EXPECT_THAT(Print({"doctor"}), HasSubstr("SERVING"));
  const json doctor = PrintJson({"doctor"});
  EXPECT_EQ(doctor["health"], "SERVING");
  EXPECT_EQ(doctor["server_info"]["model"], "models/tiny");
  EXPECT_THAT(Print({"stats"}), HasSubstr("3.0 MiB on disk"));
  EXPECT_EQ(PrintJson({"stats"})["state_disk_bytes"],
            "3145728");  // 64-bit numbers are texts in JSON
}

TEST_F(CommandsTest, NothingIsColouredWithoutATerminal) {
  for (const char* command : {"doctor", "stats"})
    EXPECT_THAT(Print({command}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace kvasir::client
