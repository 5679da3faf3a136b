#include "router/client/connection.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdlib>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "router/client/next_step.h"

namespace kvasir::client {
namespace {

constexpr int kReplyBytesMax = 64 << 20;

// Reason and field that the details name.
base::Status WithDetails(base::Status status, const google::rpc::Status& details) {
  for (const auto& any : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest request;
    if (any.UnpackTo(&info)) status = base::WithReason(status, info.reason());
    if (any.UnpackTo(&request) && request.field_violations_size() > 0) {
      status = base::WithField(status, request.field_violations(0).field());
    }
  }
  return status;
}

// gRPC prints what it also returns, as lines about its own source files. They come back when its
// environment variable GRPC_VERBOSITY is set.
void SilenceLog() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace

base::Status FromGrpc(const grpc::Status& status, const std::string& address,
                      const std::string& asked) {
  if (status.ok()) return base::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const base::Status plain(code, status.error_message());
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    return WithNextStep(WithDetails(plain, details), asked);
  }
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return base::Unavailable(
        "no server answers at {} ({}).\nStart one with `./dev run`, or with `kvasird --model "
        "FILE.gguf --data DIR`; if it listens elsewhere, say so with `--server HOST:PORT`.",
        address, status.error_message());
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return base::DeadlineExceeded("{} did not answer in time", address);
  }
  return plain;
}

Connection::Connection(std::string address) : address_(std::move(address)) {
  SilenceLog();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kReplyBytesMax);
  channel_ = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
  sessions_ = v1::SessionService::NewStub(channel_);
  memories_ = v1::MemoryService::NewStub(channel_);
  users_ = v1::UserService::NewStub(channel_);
  operations_ = v1::OperationService::NewStub(channel_);
  admin_ = v1::AdminService::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

}  // namespace kvasir::client
