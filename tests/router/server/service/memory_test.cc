// Memory across sessions over a loopback channel; goal: what one session said is mounted in the
// next, with a reason for everything that is not, and nothing is learned or read that must not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/router/server/service/tiny_server.h"
#include "tests/support/tiny_model.h"

namespace kvasir::server {
namespace {

constexpr char kFact[] = "My cat is called Tofu and likes tuna";
constexpr char kQuestion[] = "What is my cat called?";

TEST(ServiceMemory, TheNextSessionMountsWhatTheLastOneSaidWithoutClosingIt) {
  const TempFolder data;
  TinyServer server(data.path());
  const Reply said = server.Say(server.NewSession("ana"), kFact);
  EXPECT_EQ(said.route.mounts_size(), 0);
  const Reply asked = server.Say(server.NewSession("ana"), kQuestion);
  ASSERT_EQ(asked.route.mounts_size(), 1);
  const v1::MountedMemory& mount = asked.route.mounts(0);
  EXPECT_EQ(mount.frame(), 0);
  EXPECT_GT(mount.logical_tokens(), 0);
  EXPECT_EQ(mount.slots(), mount.logical_tokens());
  EXPECT_EQ(mount.digest().size(), 64u);
  EXPECT_GT(mount.score(), 0);
  EXPECT_FALSE(mount.kept());
  EXPECT_EQ(asked.usage.memory_tokens() - said.usage.memory_tokens(), mount.logical_tokens());
  EXPECT_EQ(asked.usage.memory_slots(), mount.slots());

  const auto memories = server.Memories("ana");
  ASSERT_EQ(memories.size(), 1u);  // the second session had a mount: nothing new is learned so far
  EXPECT_EQ(memories[0].name(), mount.memory());
  EXPECT_EQ(memories[0].kv().digest(), mount.digest());
  EXPECT_EQ(memories[0].use_count(), 1);
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, AMemoryChangesTheReplyAndAnOffTurnDoesNotSeeIt) {
  const TempFolder data;
  TinyServer server(data.path());
  server.Say(server.NewSession("ana"), kFact);
  const Reply with = server.Say(server.NewSession("ana"), kQuestion, 24);
  ASSERT_EQ(with.route.mounts_size(), 1);
  // Bob has no memory at all.
  const Reply without = server.Say(server.NewSession("bob"), kQuestion, 24);
  EXPECT_NE(with.logprobs, without.logprobs);
  const Reply off = server.Say(server.NewSession("ana", v1::MEMORY_MODE_OFF), kQuestion, 24);
  EXPECT_EQ(off.route.mounts_size(), 0);
  EXPECT_EQ(off.route.memory_mode(), v1::MEMORY_MODE_OFF);
  EXPECT_EQ(off.logprobs, without.logprobs);
  EXPECT_EQ(off.usage.memory_tokens(), without.usage.memory_tokens());
}

bool Mounts(const Reply& reply, const std::string& memory) {
  return std::ranges::count(reply.route.mounts(), memory, &v1::MountedMemory::memory) == 1;
}

// Waits until the background has built all memories of ana for the served model.
void WaitForModel(TinyServer& server) {
  v1::ServerInfo info;
  ASSERT_TRUE(Call(server.admin(), &v1::AdminService::Stub::GetServerInfo,
                   v1::GetServerInfoRequest(), &info)
                  .ok());
  bool all = false;
  while (!all) {
    all = true;
    for (const v1::Memory& memory : server.Memories("ana")) {
      all = all && memory.kv().model_id() == info.model_id();
    }
  }
}

TEST(ServiceMemory, AnotherModelOverTheSameDataRefusesSessionsAndRebuildsMemoriesOfTheFirst) {
  const TempFolder data;
  const kvasir::testing::TinyModelFile other({.seed = 2});
  std::string open, memory;
  v1::ChatRequest request;
  Reply first;
  {
    TinyServer server(data.path());
    open = server.NewSession("ana");
    request = TinyServer::Request(open, kFact);
    request.set_request_id("once");
    first = server.Chat(request);
    ASSERT_TRUE(first.status.ok());
  }
  {
    TinyServer server(data.path(), [&](Options& options) { options.model = other.path(); });
    EXPECT_EQ(server.Chat(TinyServer::Request(open, kQuestion)).reason, "MODEL_MISMATCH");
    EXPECT_EQ(server.Chat(request).reason, "MODEL_MISMATCH");  // its tokens mean nothing here
    const Reply asked = server.Say(server.NewSession("ana"), kQuestion);
    EXPECT_EQ(asked.route.mounts_size(), 0);
    ASSERT_EQ(asked.route.unused_size(), 1);
    EXPECT_EQ(asked.route.unused(0).reason(), v1::MISS_REASON_MODEL_MISMATCH);
    memory = asked.route.unused(0).memory();
    WaitForModel(server);  // that turn had it built
    EXPECT_TRUE(
        Mounts(server.Say(server.NewSession("ana", v1::MEMORY_MODE_READ), kQuestion), memory));
    EXPECT_TRUE(server.Consistent());
  }
  TinyServer server(data.path());
  EXPECT_EQ(server.Chat(request).text, first.text);
  server.Say(open, kQuestion);
  server.Say(server.NewSession("ana", v1::MEMORY_MODE_READ), kQuestion);
  WaitForModel(server);
  EXPECT_TRUE(
      Mounts(server.Say(server.NewSession("ana", v1::MEMORY_MODE_READ), kQuestion), memory));
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, AMountedMemoryGivesTheSameBitsAfterARestart) {
  const TempFolder data;
  std::vector<float> expected;
  {
    TinyServer server(data.path());
    server.Say(server.NewSession("ana"), kFact);
    const Reply reply = server.Say(server.NewSession("ana", v1::MEMORY_MODE_READ), kQuestion, 24);
    expected = reply.logprobs;
    ASSERT_EQ(reply.route.mounts_size(), 1);
  }
  TinyServer server(data.path());
  const Reply reply = server.Say(server.NewSession("ana", v1::MEMORY_MODE_READ), kQuestion, 24);
  ASSERT_EQ(reply.route.mounts_size(), 1);
  EXPECT_EQ(reply.route.mounts(0).tier(), v1::TIER_DISK);
  EXPECT_EQ(reply.logprobs, expected);
}

// A memory joins on a second turn; then the server starts again, and everything is recomputed from
// stored parts on both sides of the change.
TEST(ServiceMemory, AMemoryThatJoinsLaterIsSeenFromThatTurnOnAlsoAfterARestart) {
  std::vector<std::vector<float>> expected;
  for (const bool restart : {false, true}) {
    const TempFolder data;
    auto server = std::make_unique<TinyServer>(data.path());
    const auto again = [&] {
      if (!restart) return;
      server.reset();
      server = std::make_unique<TinyServer>(data.path());
    };
    server->Say(server->NewSession("ana"), "The weather is fine");  // there is a memory: slack
    const std::string session = server->NewSession("ana", v1::MEMORY_MODE_READ, "late");
    std::vector<Reply> replies = {server->Say(session, "Good morning weather", 12)};
    server->Say(server->NewSession("ana", v1::MEMORY_MODE_READ_WRITE, "fact"), kFact);
    server->Close("users/ana/sessions/fact");
    again();
    replies.push_back(server->Say(session, kQuestion, 24));
    EXPECT_EQ(replies.back().route.mounts_size(), 2);
    again();
    replies.push_back(server->Say(session, "And what does it like?", 24));
    EXPECT_EQ(replies.back().route.mounts_size(), 2);
    EXPECT_TRUE(replies.back().route.mounts(0).kept());
    for (size_t i = 0; i < replies.size(); ++i) {
      if (!restart) {
        expected.push_back(replies[i].logprobs);
      } else {
        EXPECT_EQ(replies[i].logprobs, expected[i]) << "turn " << i + 1;
        // The stored state was used: only the new tokens were computed.
        EXPECT_EQ(replies[i].usage.session_cached_tokens() > 0, i > 0);
      }
    }
    EXPECT_TRUE(server->Consistent());
  }
}

// The middle one of three turns reads nothing; what the others see does not change by that.
TEST(ServiceMemory, AnOffTurnInASessionWithMountsIsResumedAsItWas) {
  std::vector<std::vector<float>> expected;
  for (const bool restart : {false, true}) {
    const TempFolder data;
    auto server = std::make_unique<TinyServer>(data.path());
    server->Say(server->NewSession("ana"), kFact);
    const std::string session = server->NewSession("ana", v1::MEMORY_MODE_READ, "s");
    for (int i = 0; i < 3; ++i) {
      v1::ChatRequest request = TinyServer::Request(session, kQuestion, 24);
      if (i == 1) request.set_memory_mode(v1::MEMORY_MODE_OFF);
      const Reply reply = server->Chat(request);
      ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
      EXPECT_EQ(reply.route.mounts_size(), i == 1 ? 0 : 1);
      EXPECT_EQ(reply.usage.memory_slots() > 0, i != 1);
      EXPECT_EQ(reply.usage.session_cached_tokens() > 0, i > 0);
      if (!restart) {
        expected.push_back(reply.logprobs);
        continue;
      }
      EXPECT_EQ(reply.logprobs, expected[static_cast<size_t>(i)]) << "turn " << i + 1;
      server.reset();
      server = std::make_unique<TinyServer>(data.path());
    }
  }
  EXPECT_NE(expected[1], expected[2]);
}

TEST(ServiceMemory, AFirstTurnThatReadsNothingLeavesRoomForWhatLaterOnesMount) {
  const TempFolder data;
  TinyServer server(data.path());
  server.Say(server.NewSession("ana"), kFact);
  for (const auto mode : {v1::MEMORY_MODE_OFF, v1::MEMORY_MODE_INCOGNITO}) {
    const std::string session = server.NewSession("ana", v1::MEMORY_MODE_READ);
    v1::ChatRequest request = TinyServer::Request(session, "Hello");
    request.set_memory_mode(mode);
    EXPECT_EQ(server.Chat(request).route.mounts_size(), 0);
    const Reply asked = server.Say(session, kQuestion);
    EXPECT_EQ(asked.route.mounts_size(), 1) << asked.route.DebugString();
  }
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, AnIncognitoTurnIsForgottenWithItsSession) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  v1::ChatRequest request = TinyServer::Request(session, kFact);
  request.set_memory_mode(v1::MEMORY_MODE_INCOGNITO);
  EXPECT_TRUE(server.Chat(request).status.ok());
  EXPECT_EQ(server.Close(session), "");
  EXPECT_TRUE(server.Memories("ana").empty());
  v1::ListTurnsRequest list;
  list.set_parent(session);
  v1::ListTurnsResponse turns;
  ASSERT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::ListTurns, list, &turns).ok());
  EXPECT_EQ(turns.DebugString().find("Tofu"), std::string::npos);
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, AClosedSessionWithMountsBecomesAMemoryBuiltFromItsText) {
  const TempFolder data;
  TinyServer server(data.path());
  server.Say(server.NewSession("ana"), kFact);
  const std::string second = server.NewSession("ana");
  ASSERT_EQ(server.Say(second, "My cat sleeps on the piano").route.mounts_size(), 1);
  const std::string memory = server.Close(second);
  ASSERT_FALSE(memory.empty());
  v1::GetMemoryRequest request;
  request.set_name(memory);
  v1::Memory got;
  ASSERT_TRUE(Call(server.memories(), &v1::MemoryService::Stub::GetMemory, request, &got).ok());
  EXPECT_EQ(got.state(), v1::Memory::STATE_EXACT);
  EXPECT_THAT(got.source_text(), ::testing::HasSubstr("My cat sleeps on the piano"));
  EXPECT_THAT(got.source_text(), ::testing::Not(::testing::HasSubstr("tuna")));
  EXPECT_THAT(got.source_turns(), ::testing::ElementsAre(second + "/turns/1"));
  const Reply third = server.Say(server.NewSession("ana"), "Where does my cat sleep, piano?");
  EXPECT_EQ(third.route.mounts_size(), 2);
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, OffReadAndIncognitoSessionsLeaveNoMemory) {
  const TempFolder data;
  TinyServer server(data.path());
  for (const auto mode : {v1::MEMORY_MODE_OFF, v1::MEMORY_MODE_READ, v1::MEMORY_MODE_INCOGNITO}) {
    const std::string session = server.NewSession("ana", mode);
    server.Say(session, kFact);
    EXPECT_EQ(server.Close(session), "");
  }
  EXPECT_TRUE(server.Memories("ana").empty());
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceMemory, SearchAndExplainFindTheMemoryOfTheirUserOnly) {
  const TempFolder data;
  TinyServer server(data.path());
  server.Say(server.NewSession("ana"), kFact);
  // It begins with the other memory mounted, so its own is built when it is closed.
  const std::string second = server.NewSession("ana");
  server.Say(second, "Bananas are yellow");
  server.Close(second);
  server.Say(server.NewSession("bob"), "I have a cat, too");
  v1::SearchMemoriesRequest search;
  search.set_parent("users/ana");
  search.set_query("cat");
  v1::SearchMemoriesResponse found;
  ASSERT_TRUE(
      Call(server.memories(), &v1::MemoryService::Stub::SearchMemories, search, &found).ok());
  ASSERT_EQ(found.results_size(), 1);
  EXPECT_THAT(found.results(0).memory().name(), ::testing::StartsWith("users/ana/memories/"));
  EXPECT_THAT(found.results(0).turn(), ::testing::HasSubstr("/turns/1"));

  v1::ExplainRouteRequest explain;
  explain.set_session(server.NewSession("ana"));
  explain.set_message(kQuestion);
  v1::ExplainRouteResponse route;
  ASSERT_TRUE(
      Call(server.memories(), &v1::MemoryService::Stub::ExplainRoute, explain, &route).ok());
  ASSERT_EQ(route.route().mounts_size(), 1);
  ASSERT_EQ(route.route().unused_size(), 1);
  EXPECT_EQ(route.route().unused(0).reason(), v1::MISS_REASON_LOW_SCORE);
  // The turn does what was explained, and says so afterwards.
  const Reply reply = server.Say(explain.session(), kQuestion);
  ASSERT_EQ(reply.route.mounts_size(), 1);
  EXPECT_EQ(reply.route.mounts(0).memory(), route.route().mounts(0).memory());
  explain.Clear();
  explain.set_turn(reply.turn);
  ASSERT_TRUE(
      Call(server.memories(), &v1::MemoryService::Stub::ExplainRoute, explain, &route).ok());
  EXPECT_EQ(route.route().mounts(0).memory(), reply.route.mounts(0).memory());
  EXPECT_EQ(route.route().mounts(0).title(), reply.route.mounts(0).title());
}

}  // namespace
}  // namespace kvasir::server
