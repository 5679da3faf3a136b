// Deleting over a loopback channel; goal: once the call returns, nothing finds what was deleted,
// also after a restart, and nobody else notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

constexpr char kSecret[] = "The secret word is Zanzibar";
constexpr char kSecretQuestion[] = "What is the secret word?";

grpc::Status DeleteMemory(TinyServer& server, const std::string& name) {
  v1::DeleteMemoryRequest request;
  request.set_name(name);
  v1::Memory deleted;
  const grpc::Status status =
      Call(server.memories(), &v1::MemoryService::Stub::DeleteMemory, request, &deleted);
  if (status.ok()) {
    EXPECT_EQ(deleted.state(), v1::Memory::STATE_DELETED);
    EXPECT_EQ(deleted.source_text(), "");
  }
  return status;
}

// Nothing of `user` mentions the fact any more.
void ExpectForgotten(TinyServer& server, const std::string& user) {
  EXPECT_TRUE(server.Memories(user).empty());
  v1::SearchMemoriesRequest search;
  search.set_parent("users/" + user);
  search.set_query("Zanzibar secret word");
  v1::SearchMemoriesResponse found;
  const grpc::Status status =
      Call(server.memories(), &v1::MemoryService::Stub::SearchMemories, search, &found);
  EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(found.results_size(), 0);
  const std::string session = server.NewSession(user, v1::MEMORY_MODE_READ);
  v1::ExplainRouteRequest explain;
  explain.set_session(session);
  explain.set_message(kSecretQuestion);
  v1::ExplainRouteResponse route;
  ASSERT_TRUE(
      Call(server.memories(), &v1::MemoryService::Stub::ExplainRoute, explain, &route).ok());
  EXPECT_EQ(route.route().mounts_size(), 0);
  EXPECT_EQ(route.route().unused_size(), 0);
  const Reply reply = server.Say(session, kSecretQuestion);
  EXPECT_EQ(reply.route.mounts_size(), 0);
}

TEST(ServiceDeletion, ADeletedMemoryIsFoundByNothingAlsoAfterARestart) {
  const TempFolder data;
  std::vector<float> untouched;
  std::string asking;
  {
    TinyServer server(data.path());
    server.Say(server.NewSession("ana"), kSecret);
    server.Say(server.NewSession("bob"), kSecret);
    asking = server.NewSession("ana", v1::MEMORY_MODE_READ);
    const Reply asked = server.Say(asking, kSecretQuestion);
    ASSERT_EQ(asked.route.mounts_size(), 1);
    ASSERT_TRUE(DeleteMemory(server, asked.route.mounts(0).memory()).ok());
    EXPECT_EQ(DeleteMemory(server, asked.route.mounts(0).memory()).error_code(),
              grpc::StatusCode::NOT_FOUND);
    ExpectForgotten(server, "ana");
    // The session that had it mounted goes on with its own text alone.
    const Reply on = server.Say(asking, "Are you sure?");
    EXPECT_EQ(on.route.mounts_size(), 0);
    EXPECT_EQ(on.usage.session_cached_tokens(), 0);
    v1::ExplainRouteRequest explain;
    explain.set_turn(asked.turn);
    v1::ExplainRouteResponse route;
    ASSERT_TRUE(
        Call(server.memories(), &v1::MemoryService::Stub::ExplainRoute, explain, &route).ok());
    EXPECT_EQ(route.route().mounts_size(), 0);
    EXPECT_EQ(server.Memories("bob").size(), 1u);
    EXPECT_TRUE(server.Consistent());
  }
  TinyServer server(data.path());
  ExpectForgotten(server, "ana");
  EXPECT_EQ(server.Say(server.NewSession("bob"), kSecretQuestion).route.mounts_size(), 1);
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceDeletion, ADeletedSessionTakesItsTurnsAndItsMemoryWithIt) {
  const TempFolder data;
  {
    TinyServer server(data.path());
    const std::string session = server.NewSession("ana");
    const Reply reply = server.Say(session, kSecret);
    v1::DeleteSessionRequest request;
    request.set_name(session);
    google::protobuf::Empty empty;
    ASSERT_TRUE(
        Call(server.sessions(), &v1::SessionService::Stub::DeleteSession, request, &empty).ok());
    EXPECT_EQ(Call(server.sessions(), &v1::SessionService::Stub::DeleteSession, request, &empty)
                  .error_code(),
              grpc::StatusCode::NOT_FOUND);
    v1::GetTurnRequest get;
    get.set_name(reply.turn);
    v1::Turn turn;
    EXPECT_EQ(Call(server.sessions(), &v1::SessionService::Stub::GetTurn, get, &turn).error_code(),
              grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(server.Chat(TinyServer::Request(session, "Hello")).status.error_code(),
              grpc::StatusCode::NOT_FOUND);
    ExpectForgotten(server, "ana");
    EXPECT_TRUE(server.Consistent());
  }
  TinyServer server(data.path());
  ExpectForgotten(server, "ana");
}

TEST(ServiceDeletion, AnErasedUserIsGoneAndTheRecordOfItStays) {
  const TempFolder data;
  std::string erasure;
  {
    TinyServer server(data.path());
    server.Say(server.NewSession("ana"), kSecret);
    server.Say(server.NewSession("bob"), kSecret);
    v1::EraseUserRequest request;
    request.set_name("users/ana");
    v1::Operation operation;
    ASSERT_TRUE(Call(server.users(), &v1::UserService::Stub::EraseUser, request, &operation).ok());
    EXPECT_TRUE(operation.done());
    v1::Erasure done;
    ASSERT_TRUE(operation.response().UnpackTo(&done));
    EXPECT_EQ(done.state(), v1::Erasure::STATE_DONE);
    erasure = done.name();
    EXPECT_THAT(done.DebugString(), ::testing::Not(::testing::HasSubstr("ana")));
    v1::GetUserRequest get;
    get.set_name("users/ana");
    v1::User user;
    EXPECT_EQ(Call(server.users(), &v1::UserService::Stub::GetUser, get, &user).error_code(),
              grpc::StatusCode::NOT_FOUND);
    EXPECT_TRUE(server.Consistent());
  }
  TinyServer server(data.path());
  v1::GetErasureRequest get;
  get.set_name(erasure);
  v1::Erasure found;
  ASSERT_TRUE(Call(server.users(), &v1::UserService::Stub::GetErasure, get, &found).ok());
  EXPECT_EQ(found.state(), v1::Erasure::STATE_DONE);
  v1::ListSessionsRequest list;
  list.set_parent("users/ana");
  v1::ListSessionsResponse sessions;
  Call(server.sessions(), &v1::SessionService::Stub::ListSessions, list, &sessions);
  EXPECT_EQ(sessions.sessions_size(), 0);
  EXPECT_EQ(server.Memories("bob").size(), 1u);
  ExpectForgotten(server, "ana");
}

// A request of a new session of ana's whose reply is long: the same in every new session.
v1::ChatRequest LongRequest(TinyServer& server) {
  v1::ChatRequest request;
  for (int seed = 1; seed < 100; ++seed) {
    request =
        TinyServer::Request(server.NewSession("ana", v1::MEMORY_MODE_READ), kSecretQuestion, 3000);
    request.set_seed(seed);
    if (server.Chat(request).ids.size() >= 1000) break;
  }
  request.set_session(server.NewSession("ana", v1::MEMORY_MODE_READ));
  return request;
}

TEST(ServiceDeletion, DeletingAMountedMemoryCancelsTheTurnThatReadsIt) {
  const TempFolder data;
  TinyServer server(data.path());
  server.Say(server.NewSession("ana"), kSecret);
  bool deleted = false;
  const Reply reply = server.Chat(LongRequest(server), [&](const v1::ChatResponse& event) {
    if (!event.has_delta() || deleted) return;
    deleted = true;
    EXPECT_TRUE(DeleteMemory(server, server.Memories("ana")[0].name()).ok());
  });
  ASSERT_TRUE(deleted);
  // Not a whole reply: what was being made read the memory.
  EXPECT_TRUE(!reply.status.ok() || reply.finish == v1::FINISH_REASON_CANCELLED)
      << "finish " << reply.finish;
  EXPECT_LT(reply.ids.size(), 1000u);
  v1::GetTurnRequest request;
  request.set_name(reply.turn);
  v1::Turn turn;
  EXPECT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::GetTurn, request, &turn).ok());
  EXPECT_EQ(turn.state(), v1::Turn::STATE_DONE);
  EXPECT_EQ(turn.finish_reason(), v1::FINISH_REASON_CANCELLED);
  ExpectForgotten(server, "ana");
  EXPECT_TRUE(server.Consistent());
}

}  // namespace
}  // namespace kvasir::server
