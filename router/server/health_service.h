// HealthService: grpc.health.v1 for the server as a whole ("") and for every service of kvasir.v1.
//
// Starts as NOT_SERVING. Threads: all methods may be called concurrently; none blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"

namespace kvasir::server {

// Watches at once, over all connections; more get RESOURCE_EXHAUSTED.
inline constexpr int kHealthWatchesMax = 256;

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // `services`: full names, "kvasir.v1.SessionService". All have the state of the whole server.
  explicit HealthService(std::vector<std::string> services);
  ~HealthService() override;

  // Sets the state and tells every Watch.
  void SetServing(bool serving);
  // Ends every Watch with UNAVAILABLE; later ones end at once. The state becomes NOT_SERVING.
  void Shutdown();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class Watcher;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace kvasir::server
