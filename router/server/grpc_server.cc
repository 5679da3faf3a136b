#include "router/server/grpc_server.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "router/server/address.h"
#include "router/server/malformed_requests.h"

namespace kvasir::server {
namespace {

constexpr int kMetadataBytesMax = 16 << 10;
constexpr int kPingIntervalMinMs = 10'000;   // a client that pings more often is disconnected
constexpr int kKeepaliveMs = 60'000;         // a peer that is gone is noticed after so long,
constexpr int kKeepaliveTimeoutMs = 20'000;  // plus this
constexpr int kThreadsMax = 64;              // of gRPC itself

// Names of the services of kvasir.v1 that the health service answers for.
std::vector<std::string> ServiceNames() {
  std::vector<std::string> names;
  for (const char* name :
       {"AdminService", "MemoryService", "OperationService", "SessionService", "UserService"}) {
    names.push_back(fmt::format("kvasir.v1.{}", name));
  }
  return names;
}

void SetLimits(const Options& options, grpc::ServerBuilder* builder) {
  const int bytes_max = static_cast<int>(options.request_bytes_max);
  builder->SetMaxReceiveMessageSize(bytes_max);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(options.streams_per_connection_max));
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingIntervalMinMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server must fail
  // Only identity: a compressed request ends with UNIMPLEMENTED before it is expanded.
  builder->AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                              1 << GRPC_COMPRESS_NONE);
  builder->SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<MalformedRequests>());
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
  grpc::ResourceQuota quota("kvasird");
  quota.SetMaxThreads(kThreadsMax);
  builder->SetResourceQuota(quota);
}

// gRPC prints what it also returns, as lines about its own source files. They come back when its
// environment variable GRPC_VERBOSITY is set.
void SilenceLog() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

base::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const Options& options, std::span<grpc::Service* const> services) {
  KVASIR_ASSIGN_OR_RETURN(const Address address, ParseAddress(options.listen));
  if (!IsLoopback(address)) {
    return base::InvalidArgument("{} is not on the loopback", options.listen);
  }
  SilenceLog();
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<GrpcServer> server(new GrpcServer);
  server->health_ = std::make_unique<HealthService>(ServiceNames());
  grpc::ServerBuilder builder;
  SetLimits(options, &builder);
  builder.AddListeningPort(Format(address), grpc::InsecureServerCredentials(), &server->port_);
  builder.RegisterService(server->health_.get());
  for (grpc::Service* service : services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return base::Unavailable(
        "cannot listen on {}: is another server there? Stop it, or choose another address with "
        "--listen HOST:PORT",
        options.listen);
  }
  return server;
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) Stop(0);
}

void GrpcServer::Stop(double grace_s) {
  health_->Shutdown();
  const auto grace = std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::duration<double>(grace_s));
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
}

}  // namespace kvasir::server
