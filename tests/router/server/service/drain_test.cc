// The end of a server and of streams that nobody reads; goal: what is refused says so, what reads
// is served until the end, and a slow reader is counted as one.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

// Its reply has more than 1700 tokens.
v1::ChatRequest LongReply(const std::string& session) {
  v1::ChatRequest request = TinyServer::Request(session, "Tell me a long story", 3000);
  request.set_seed(5);
  return request;
}

TEST(ServiceDrain, CallsThatChangeSomethingAreRefusedAndThoseThatReadAreServed) {
  const TempFolder data;
  TinyServer server(data.path());
  const std::string session = server.NewSession("ana");
  const std::string turn = server.Say(session, "My cat is called Tofu").turn;
  const std::string memory = server.Close(session);
  server.server().Drain();

  const auto expect_refused = [](const grpc::Status& status, const char* method) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << method;
    EXPECT_EQ(ReasonOf(status), "SERVER_DRAINING") << method;
  };
  v1::CreateSessionRequest create;
  create.set_parent("users/ana");
  v1::Session made;
  expect_refused(Call(server.sessions(), &v1::SessionService::Stub::CreateSession, create, &made),
                 "CreateSession");
  v1::DeleteSessionRequest remove;
  remove.set_name(session);
  google::protobuf::Empty empty;
  expect_refused(Call(server.sessions(), &v1::SessionService::Stub::DeleteSession, remove, &empty),
                 "DeleteSession");
  v1::CompactSessionRequest close;
  close.set_name(session);
  v1::Operation operation;
  expect_refused(
      Call(server.sessions(), &v1::SessionService::Stub::CompactSession, close, &operation),
      "CompactSession");
  v1::DeleteMemoryRequest forget;
  forget.set_name(memory);
  v1::Memory forgotten;
  expect_refused(
      Call(server.memories(), &v1::MemoryService::Stub::DeleteMemory, forget, &forgotten),
      "DeleteMemory");
  v1::EraseUserRequest erase;
  erase.set_name("users/ana");
  expect_refused(Call(server.users(), &v1::UserService::Stub::EraseUser, erase, &operation),
                 "EraseUser");
  expect_refused(server.Chat(TinyServer::Request(session, "Hello")).status, "Chat");

  v1::GetSessionRequest get;
  get.set_name(session);
  EXPECT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::GetSession, get, &made).ok());
  EXPECT_EQ(server.Memories("ana").size(), 1u);
  EXPECT_TRUE(server.Consistent());
  v1::CancelTurnRequest cancel;
  cancel.set_name(turn);
  v1::Turn ended;
  EXPECT_TRUE(Call(server.sessions(), &v1::SessionService::Stub::CancelTurn, cancel, &ended).ok());
  EXPECT_EQ(ended.name(), turn);
}

TEST(ServiceDrain, AReaderThatTakesNothingGetsABareCancelledAndIsCountedAsSlow) {
  const TempFolder data;
  TinyServer server(data.path(), [](Options& options) { options.slow_reader_s_max = 0; });
  // The transport takes a few events ahead of the reader and no more.
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto sessions = v1::SessionService::NewStub(
      grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server.server().port()),
                                grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  auto stream = sessions->Chat(&context, LongReply(server.NewSession("ana")));
  v1::ChatResponse event;
  ASSERT_TRUE(stream->Read(&event));
  const Metrics& metrics = server.server().metrics();
  std::string page;
  do {  // nothing is read until the server has given up
    page = metrics.Page();
  } while (page.find("kvasir_lost_streams_total{") == std::string::npos);
  EXPECT_THAT(page, ::testing::HasSubstr("kvasir_lost_streams_total{reason=\"SLOW_READER\"} 1"));
  while (stream->Read(&event)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(status.error_details(), "");
}

}  // namespace
}  // namespace kvasir::server
