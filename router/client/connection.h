// Connection: the stubs of one server, and calls whose failures read as sentences.
//
// Threads: all methods may be called concurrently. Calls block until the answer or the deadline.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "kvasir/v1/admin_service.grpc.pb.h"
#include "kvasir/v1/memory_service.grpc.pb.h"
#include "kvasir/v1/operation_service.grpc.pb.h"
#include "kvasir/v1/session_service.grpc.pb.h"
#include "kvasir/v1/user_service.grpc.pb.h"

namespace kvasir::client {

inline constexpr std::chrono::seconds kCallTimeout{30};

// A failed call as base::Status: the server's message, reason and field; when no server answered at
// all, what to do about it. `address` is named in that text.
// `asked`: the resource that the call was about, see WithNextStep.
base::Status FromGrpc(const grpc::Status& status, const std::string& address,
                      const std::string& asked = "");

// The resource that a request is about; "" for none.
template <typename Request>
std::string ResourceOf(const Request& request) {
  if constexpr (requires { request.name(); }) {
    return request.name();
  } else if constexpr (requires { request.turn(); }) {
    return request.turn();
  } else if constexpr (requires { request.parent(); }) {
    return request.parent();
  } else {
    return "";
  }
}

class Connection {
 public:
  // `address`: HOST:PORT. Connects with the first call. From now on gRPC prints nothing
  // in this process, unless GRPC_VERBOSITY is set.
  explicit Connection(std::string address);

  const std::string& address() const { return address_; }
  v1::SessionService::Stub& sessions() { return *sessions_; }
  v1::MemoryService::Stub& memories() { return *memories_; }
  v1::UserService::Stub& users() { return *users_; }
  v1::OperationService::Stub& operations() { return *operations_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  grpc::health::v1::Health::Stub& health() { return *health_; }

  // One call of a unary method: Call(c.sessions(), &v1::SessionService::Stub::GetSession, request).
  template <typename Stub, typename Request, typename Response>
  base::StatusOr<Response> Call(
      Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      const Request& request, std::chrono::seconds timeout = kCallTimeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status, address_, ResourceOf(request));
    return response;
  }

 private:
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SessionService::Stub> sessions_;
  std::unique_ptr<v1::MemoryService::Stub> memories_;
  std::unique_ptr<v1::UserService::Stub> users_;
  std::unique_ptr<v1::OperationService::Stub> operations_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace kvasir::client
