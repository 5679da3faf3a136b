// AdminService: the server itself.
#pragma once

#include "kvasir/v1/admin_service.grpc.pb.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

class AdminHandlers final : public v1::AdminService::CallbackService {
 public:
  explicit AdminHandlers(HandlerContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* rpc,
                                          const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override;
  grpc::ServerUnaryReactor* GetStats(grpc::CallbackServerContext* rpc,
                                     const v1::GetStatsRequest* request,
                                     v1::Stats* response) override;
  grpc::ServerUnaryReactor* CheckConsistency(grpc::CallbackServerContext* rpc,
                                             const v1::CheckConsistencyRequest* request,
                                             v1::CheckConsistencyResponse* response) override;

 private:
  HandlerContext& context_;
};

}  // namespace kvasir::server
