// What sessions and users take comes back when they are gone (docs/architecture.md, invariant I8).
// Method: the server's own counts before and after.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

v1::Stats StatsOf(TinyServer& server) {
  v1::Stats stats;
  EXPECT_TRUE(
      Call(server.admin(), &v1::AdminService::Stub::GetStats, v1::GetStatsRequest(), &stats).ok());
  return stats;
}

// The count once it is `wanted`: the engine lets go of a finished request a moment after its end.
int64_t PagesOnce(TinyServer& server, int64_t wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int64_t used = 0;
  do {
    used = StatsOf(server).kv_used_bytes();
  } while (used != wanted && std::chrono::steady_clock::now() < end);
  return used;
}

TEST(ServiceBaseline, AClosedSessionHoldsNoPages) {
  const TempFolder data;
  TinyServer server(data.path());
  const int64_t before = StatsOf(server).kv_used_bytes();
  EXPECT_GT(before, 0);  // the base
  for (const auto mode : {v1::MEMORY_MODE_READ_WRITE, v1::MEMORY_MODE_INCOGNITO}) {
    const std::string session = server.NewSession("ana", mode);
    server.Say(session, "My cat is called Tofu");
    server.Say(session, "And likes tuna");
    EXPECT_GT(StatsOf(server).kv_used_bytes(), before);
    server.Close(session);
    EXPECT_EQ(PagesOnce(server, before), before) << v1::MemoryMode_Name(mode);
  }
}

TEST(ServiceBaseline, ErasedUsersHoldNoPagesAndNoStates) {
  const TempFolder data;
  TinyServer server(data.path());
  const int64_t before = StatsOf(server).kv_used_bytes();
  for (int round = 0; round < 3; ++round) {
    for (const std::string user : {"ana", "bob"}) {
      for (const bool close : {true, false}) {
        const std::string session = server.NewSession(user);
        server.Say(session, "My cat is called Tofu");
        if (close) server.Close(session);
      }
      const Reply mounted = server.Say(server.NewSession(user), "What is my cat called?");
      EXPECT_GT(mounted.route.mounts_size(), 0);
    }
    EXPECT_GT(StatsOf(server).state_ram_bytes(), 0);
    for (const std::string user : {"ana", "bob"}) {
      v1::EraseUserRequest request;
      request.set_name("users/" + user);
      v1::Operation operation;
      ASSERT_TRUE(
          Call(server.users(), &v1::UserService::Stub::EraseUser, request, &operation).ok());
      EXPECT_TRUE(operation.done());
    }
    EXPECT_EQ(PagesOnce(server, before), before) << "round " << round;
    EXPECT_EQ(StatsOf(server).state_ram_bytes(), 0);
    EXPECT_EQ(StatsOf(server).sessions(), 0);
    EXPECT_EQ(StatsOf(server).memories(), 0);
  }
}

}  // namespace
}  // namespace kvasir::server
