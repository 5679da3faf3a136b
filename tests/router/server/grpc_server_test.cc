// GrpcServer over the loopback: health, reflection, limits; goal: what a client sees before any
// service of ours is asked.
#include "router/server/grpc_server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kvasir::server {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class GrpcServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.listen = "127.0.0.1:0";
    auto server = GrpcServer::Start(options_, {});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = std::move(*server);
    channel_ = grpc::CreateChannel(fmt::format("127.0.0.1:{}", server_->port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = Health::NewStub(channel_);
  }

  grpc::Status Check(const std::string& service, HealthCheckResponse::ServingStatus* state) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status = stub_->Check(&context, request, &response);
    *state = response.status();
    return status;
  }

  Options options_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(GrpcServerTest, IsNotServingUntilToldSo) {
  HealthCheckResponse::ServingStatus state;
  for (const char* service : {"", "kvasir.v1.SessionService"}) {
    ASSERT_TRUE(Check(service, &state).ok());
    EXPECT_EQ(state, HealthCheckResponse::NOT_SERVING);
  }
  server_->SetServing(true);
  ASSERT_TRUE(Check("kvasir.v1.MemoryService", &state).ok());
  EXPECT_EQ(state, HealthCheckResponse::SERVING);
}

TEST_F(GrpcServerTest, AnAddressInUseIsRefusedWithWhatToDoAndWithoutLinesOfGrpc) {
  options_.listen = fmt::format("127.0.0.1:{}", server_->port());
  testing::internal::CaptureStderr();
  const auto second = GrpcServer::Start(options_, {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr(options_.listen));
  EXPECT_THAT(std::string(second.status().message()), testing::HasSubstr("--listen HOST:PORT"));
}

TEST_F(GrpcServerTest, AnUnknownServiceIsNotFoundWithDetails) {
  HealthCheckResponse::ServingStatus state;
  const grpc::Status status = Check("kvasir.v1.Nothing", &state);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  google::rpc::Status rpc;
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(rpc.ParseFromString(status.error_details()));
  ASSERT_TRUE(rpc.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "RESOURCE_NOT_FOUND");
}

TEST_F(GrpcServerTest, WatchSendsEveryChangeAndEndsWithTheServer) {
  grpc::ClientContext context;
  auto watch = stub_->Watch(&context, {});
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  server_->SetServing(true);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  server_->SetServing(true);  // no change, nothing sent
  server_->SetServing(false);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  server_->Stop(5);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcServerTest, AWatchThatIsCancelledLeavesRoomForOthers) {
  for (int i = 0; i < 3 * kHealthWatchesMax; ++i) {
    grpc::ClientContext context;
    auto watch = stub_->Watch(&context, {});
    HealthCheckResponse response;
    ASSERT_TRUE(watch->Read(&response)) << i;
    context.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(GrpcServerTest, ARequestOverTheLimitIsRefused) {
  HealthCheckResponse::ServingStatus state;
  const auto bytes = static_cast<size_t>(options_.request_bytes_max);
  EXPECT_EQ(Check(std::string(bytes + 1, 'x'), &state).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Check(std::string(bytes / 2, 'x'), &state).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, ListsItsServicesThroughReflection) {
  // ServerReflectionRequest{list_services: "*"} is field 7; the answer is searched as bytes.
  grpc::GenericStub generic(channel_);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  auto call = generic.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  const auto wait = [&] {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(wait());
  grpc::Slice slice(std::string("\x3a\x01*", 3));
  call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
  ASSERT_TRUE(wait());
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  ASSERT_TRUE(wait());
  grpc::Slice whole;
  ASSERT_TRUE(answer.DumpToSingleSlice(&whole).ok());
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(whole.begin()), whole.size()),
              testing::HasSubstr("grpc.health.v1.Health"));
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
}

TEST_F(GrpcServerTest, ASecondServerOnThePortFails) {
  Options same = options_;
  same.listen = fmt::format("127.0.0.1:{}", server_->port());
  EXPECT_EQ(GrpcServer::Start(same, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(GrpcServer, RefusesToListenBeyondTheLoopback) {
  Options options;
  options.listen = "0.0.0.0:0";
  EXPECT_EQ(GrpcServer::Start(options, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvasir::server
