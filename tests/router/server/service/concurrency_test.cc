// Turns at the same time, broken off, repeated and attached to; goal: every end is a documented
// one, a request_id is served once, and the server drains.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

constexpr int32_t kLong = 3000;  // tokens: some seconds

v1::ChatRequest Long(const std::string& session) {
  v1::ChatRequest request = TinyServer::Request(session, "Tell me a long story", kLong);
  request.set_seed(3);
  return request;
}

// Calls `then` once, at the first delta of the reply to `request`.
Reply During(TinyServer& server, const v1::ChatRequest& request,
             const std::function<void(const std::string& turn)>& then) {
  bool called = false;
  Reply reply = server.Chat(request, [&](const v1::ChatResponse& event) {
    if (!event.has_delta() || called) return;
    called = true;
    then(event.turn());
  });
  EXPECT_TRUE(called);
  return reply;
}

v1::Turn Cancel(TinyServer& server, const std::string& name) {
  v1::CancelTurnRequest request;
  request.set_name(name);
  v1::Turn turn;
  const grpc::Status status =
      Call(server.sessions(), &v1::SessionService::Stub::CancelTurn, request, &turn);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return turn;
}

TEST(ServiceTurns, ASecondTurnOfABusySessionIsRefusedAndCancelEndsTheFirst) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  v1::Turn cancelled;
  const Reply reply = During(server, Long(session), [&](const std::string& name) {
    const Reply second = server.Chat(TinyServer::Request(session, "Hello"));
    EXPECT_EQ(second.status.error_code(), grpc::StatusCode::ABORTED);
    EXPECT_EQ(second.reason, "SESSION_BUSY");
    v1::CompactSessionRequest close;
    close.set_name(session);
    v1::Operation operation;
    const grpc::Status closing =
        Call(server.sessions(), &v1::SessionService::Stub::CompactSession, close, &operation);
    EXPECT_EQ(ReasonOf(closing), "SESSION_BUSY");
    v1::GetTurnRequest get;
    get.set_name(name);
    v1::Turn running;
    EXPECT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::GetTurn, get, &running).ok());
    EXPECT_EQ(running.state(), v1::Turn::STATE_RUNNING);
    cancelled = Cancel(server, name);
  });
  EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_EQ(reply.finish, v1::FINISH_REASON_CANCELLED);
  EXPECT_LT(reply.ids.size(), static_cast<size_t>(kLong));
  EXPECT_EQ(cancelled.state(), v1::Turn::STATE_DONE);
  EXPECT_EQ(cancelled.finish_reason(), v1::FINISH_REASON_CANCELLED);
  EXPECT_EQ(cancelled.text(), reply.text);
  // Again: it is returned as it is.
  EXPECT_EQ(Cancel(server, reply.turn).text(), reply.text);
  const Reply next = server.Say(session, "Go on");
  EXPECT_GE(next.usage.session_cached_tokens(), static_cast<int>(reply.ids.size()) - 1);
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceTurns, AClientThatLeavesEndsItsTurn) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  std::string name;
  {
    grpc::ClientContext context;
    auto stream = server.sessions().Chat(&context, Long(session));
    v1::ChatResponse event;
    while (stream->Read(&event) && !event.has_delta()) {
    }
    name = event.turn();
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // The turn ends by itself; CancelTurn waits for that end whether it came before or not.
  EXPECT_EQ(Cancel(server, name).finish_reason(), v1::FINISH_REASON_CANCELLED);
  EXPECT_EQ(server.Say(session, "Hello").turn, session + "/turns/2");
}

TEST(ServiceTurns, ARepeatedRequestIsReplayedWordByWordAndAnotherBodyRefused) {
  const TempFolder data;
  v1::ChatRequest request;
  Reply first;
  {
    TinyServer server(data.path());
    request = TinyServer::Request(server.NewSession("ana"), "Hello there", 20);
    request.set_request_id("r-1");
    first = server.Chat(request);
    ASSERT_TRUE(first.status.ok()) << first.status.error_message();
    v1::ChatRequest other = request;
    other.set_message("Something else");
    const Reply refused = server.Chat(other);
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
    EXPECT_EQ(refused.reason, "REQUEST_ID_REUSED");
  }
  for (int i = 0; i < 2; ++i) {
    TinyServer server(data.path());
    const Reply again = server.Chat(request);
    ASSERT_TRUE(again.status.ok()) << again.status.error_message();
    ASSERT_EQ(again.events.size(), first.events.size());
    for (size_t e = 0; e < first.events.size(); ++e) {
      EXPECT_EQ(again.events[e].SerializeAsString(), first.events[e].SerializeAsString()) << e;
    }
    request.set_resume_after_seq(5);
    const Reply rest = server.Chat(request);
    request.clear_resume_after_seq();
    ASSERT_EQ(rest.events.size(), first.events.size() - 5);
    EXPECT_EQ(rest.events[0].seq(), 6);
  }
}

TEST(ServiceTurns, ALostStreamWithARequestIdIsAttachedToAgain) {
  const TempFolder data;
  TinyServer server(data.path());
  v1::ChatRequest request = TinyServer::Request(server.NewSession("ana"), "Hello there", 200);
  request.set_request_id("r-1");
  int last_seq = 0;
  std::string text;
  {
    grpc::ClientContext context;
    auto stream = server.sessions().Chat(&context, request);
    v1::ChatResponse event;
    while (stream->Read(&event) && last_seq < 4) {
      last_seq = event.seq();
      text += event.delta().text();
    }
    text = text.substr(0, text.size());
    context.TryCancel();
    stream->Finish();
  }
  request.set_resume_after_seq(last_seq);
  const Reply rest = server.Chat(request);
  ASSERT_TRUE(rest.status.ok()) << rest.status.error_message();
  ASSERT_FALSE(rest.events.empty());
  EXPECT_EQ(rest.events.front().seq(), last_seq + 1);
  EXPECT_NE(rest.finish, v1::FINISH_REASON_CANCELLED);
  request.clear_resume_after_seq();
  const Reply whole = server.Chat(request);
  EXPECT_TRUE(whole.text.ends_with(rest.text));
  EXPECT_EQ(whole.events.size(), rest.events.size() + static_cast<size_t>(last_seq));
}

TEST(ServiceTurns, EightSessionsAtOnceGiveWhatTheyGiveAlone) {
  std::vector<Reply> alone(8);
  {
    const TempFolder data;
    TinyServer server(data.path());
    for (int i = 0; i < 8; ++i) {
      alone[i] = server.Say(server.NewSession(fmt::format("user{}", i)),
                            fmt::format("I am number {}", i), 30);
    }
  }
  const TempFolder data;
  TinyServer server(data.path());
  std::vector<Reply> together(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      together[i] = server.Say(server.NewSession(fmt::format("user{}", i)),
                               fmt::format("I am number {}", i), 30);
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(together[i].ids, alone[i].ids) << i;
    EXPECT_EQ(together[i].logprobs, alone[i].logprobs) << i;
    EXPECT_EQ(together[i].usage.computed_tokens(), alone[i].usage.computed_tokens()) << i;
  }
  EXPECT_TRUE(server.Consistent());
}

TEST(ServiceTurns, DrainingLetsARunningTurnEndAndRefusesNewOnes) {
  const TempFolder data;
  std::string session;
  Reply reply;
  {
    TinyServer server(data.path());
    session = server.NewSession("ana");
    const std::string other = server.NewSession("bob");
    std::thread stopper;
    reply =
        During(server, TinyServer::Request(session, "Hello there", 300),
               [&](const std::string&) { stopper = std::thread([&] { server.server().Stop(); }); });
    stopper.join();
    EXPECT_FALSE(server.Chat(TinyServer::Request(other, "Hello")).status.ok());
  }
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  EXPECT_NE(reply.finish, v1::FINISH_REASON_CANCELLED);
  // Its state was stored: the next turn computes its own tokens only.
  TinyServer server(data.path());
  const Reply next = server.Say(session, "And then?");
  EXPECT_GE(next.usage.session_cached_tokens(),
            reply.usage.computed_tokens() + reply.usage.output_tokens());
}

TEST(ServiceTurns, ATurnThatDrainingDoesNotWaitForIsCancelledAndKept) {
  const TempFolder data;
  std::string session;
  Reply reply;
  {
    TinyServer server(data.path(), [](Options& options) { options.drain_s = 0; });
    session = server.NewSession("ana");
    std::thread stopper;
    reply = During(server, Long(session), [&](const std::string&) {
      stopper = std::thread([&] { server.server().Stop(); });
    });
    stopper.join();
  }
  EXPECT_EQ(reply.finish, v1::FINISH_REASON_CANCELLED);
  TinyServer server(data.path());
  v1::GetTurnRequest get;
  get.set_name(reply.turn);
  v1::Turn turn;
  ASSERT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::GetTurn, get, &turn).ok());
  EXPECT_EQ(turn.text(), reply.text);
  EXPECT_TRUE(server.Consistent());
}

}  // namespace
}  // namespace kvasir::server
