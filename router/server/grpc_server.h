// GrpcServer: a listening gRPC server with the limits of Options, health and reflection.
//
// Compression: requests other than identity are refused with UNIMPLEMENTED before a byte of them is
// expanded (gRPC 1.51 checks its size limit before expansion only), and answers are not compressed.
// Threads: all methods may be called concurrently.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <span>

#include "engine/base/status.h"
#include "router/server/health_service.h"
#include "router/server/options.h"

namespace kvasir::server {

class GrpcServer {
 public:
  // Listens on options.listen and serves `services`, which must outlive the server. Health says
  // NOT_SERVING until SetServing(true).
  // Errors: InvalidArgument (address), Unavailable (it cannot listen there).
  static base::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const Options& options, std::span<grpc::Service* const> services);
  // As Stop(0).
  ~GrpcServer();

  // Port it listens on.
  int port() const { return port_; }
  void SetServing(bool serving) { health_->SetServing(serving); }

  // Health says NOT_SERVING, new calls are refused, running ones get `grace_s` seconds and are then
  // cancelled. Returns when none is left. Blocks.
  void Stop(double grace_s);

 private:
  GrpcServer() = default;
  std::unique_ptr<HealthService> health_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace kvasir::server
