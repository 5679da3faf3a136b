// MalformedRequests: a request whose bytes are no message of its type, or whose text is no UTF-8
// (proto3 has no other), gets INVALID_ARGUMENT with details; gRPC itself says UNIMPLEMENTED.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <vector>

namespace kvasir::server {

class MalformedRequests final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;
};

}  // namespace kvasir::server
