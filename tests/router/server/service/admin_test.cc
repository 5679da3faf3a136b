// What the server says of itself and of work that goes on; goal: figures and operations are those
// of the store, also after a restart.
#include <gtest/gtest.h>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

v1::Stats Stats(TinyServer& server) {
  v1::Stats stats;
  const auto status =
      Call(server.admin(), &v1::AdminService::Stub::GetStats, v1::GetStatsRequest(), &stats);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return stats;
}

TEST(ServiceAdmin, StatsCountUsersSessionsAndMemories) {
  const TempFolder data;
  for (int round = 1; round <= 2; ++round) {
    TinyServer server(data.path());
    if (round == 1) {
      const std::string session = server.NewSession("ana");
      server.Say(session, "My cat is called Tofu");
      server.Close(session);
      server.NewSession("ana");
      server.NewSession("bob");
    }
    EXPECT_EQ(Stats(server).users(), 2);
    EXPECT_EQ(Stats(server).sessions(), 3);
    EXPECT_EQ(Stats(server).memories(), 1);
  }
  TinyServer server(data.path());
  v1::EraseUserRequest erase;
  erase.set_name("users/ana");
  v1::Operation operation;
  ASSERT_TRUE(Call(server.users(), &v1::UserService::Stub::EraseUser, erase, &operation).ok());
  EXPECT_EQ(Stats(server).users(), 1);
  EXPECT_EQ(Stats(server).sessions(), 1);
  EXPECT_EQ(Stats(server).memories(), 0);
}

TEST(ServiceAdmin, StatsCountAsMemoryTokensWhatMountsStoodForAndNotTheBase) {
  const TempFolder data;
  TinyServer server(data.path());
  const Reply said = server.Say(server.NewSession("ana"), "My cat is called Tofu");
  EXPECT_GT(said.usage.memory_tokens(), 0);  // the base
  EXPECT_EQ(Stats(server).memory_tokens(), 0);
  const Reply asked = server.Say(server.NewSession("ana"), "What is my cat called?");
  ASSERT_EQ(asked.route.mounts_size(), 1);
  EXPECT_EQ(Stats(server).memory_tokens(), asked.route.memory_tokens());
}

TEST(ServiceAdmin, CheckConsistencySaysHowMuchItCompared) {
  const TempFolder data;
  TinyServer server(data.path());
  server.NewSession("ana");
  v1::CheckConsistencyResponse response;
  ASSERT_TRUE(Call(server.admin(), &v1::AdminService::Stub::CheckConsistency,
                   v1::CheckConsistencyRequest(), &response)
                  .ok());
  EXPECT_EQ(response.checked_records(), 2);  // the user and the session
}

TEST(ServiceAdmin, TheOperationOfAClosedSessionIsFoundAfterARestart) {
  const TempFolder data;
  std::string session;
  v1::Operation closing;
  {
    TinyServer server(data.path());
    server.Say(server.NewSession("ana"), "My cat is called Tofu");
    session = server.NewSession("ana");
    server.Say(session, "My cat sleeps on the piano");  // with a mount: built behind, from text
    v1::CompactSessionRequest request;
    request.set_name(session);
    ASSERT_TRUE(
        Call(server.sessions(), &v1::SessionService::Stub::CompactSession, request, &closing).ok());
  }
  TinyServer server(data.path());
  v1::WaitOperationRequest wait;
  wait.set_name(closing.name());
  v1::Operation operation;
  const auto status =
      Call(server.operations(), &v1::OperationService::Stub::WaitOperation, wait, &operation);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(operation.name(), closing.name());
  ASSERT_TRUE(operation.done());
  v1::CompactSessionMetadata metadata;
  ASSERT_TRUE(operation.metadata().UnpackTo(&metadata));
  EXPECT_EQ(metadata.session(), session);
  v1::CompactSessionResponse response;
  ASSERT_TRUE(operation.response().UnpackTo(&response));
  EXPECT_TRUE(response.memory().starts_with("users/ana/memories/"));

  v1::DeleteSessionRequest remove;
  remove.set_name(session);
  google::protobuf::Empty empty;
  ASSERT_TRUE(
      Call(server.sessions(), &v1::SessionService::Stub::DeleteSession, remove, &empty).ok());
  v1::GetOperationRequest get;
  for (const std::string& name :
       {closing.name(), std::string("operations/close-"), std::string("operations/close-12"),
        "operations/close-" + std::string(64, '0'), "operations/close-" + std::string(65, '0'),
        std::string("operations/another")}) {
    get.set_name(name);
    EXPECT_EQ(ReasonOf(Call(server.operations(), &v1::OperationService::Stub::GetOperation, get,
                            &operation)),
              "RESOURCE_NOT_FOUND")
        << name;
  }
}

}  // namespace
}  // namespace kvasir::server
