// MemoryService: what is remembered of a user.
#pragma once

#include "kvasir/v1/memory_service.grpc.pb.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

class MemoryHandlers final : public v1::MemoryService::CallbackService {
 public:
  explicit MemoryHandlers(HandlerContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* GetMemory(grpc::CallbackServerContext* rpc,
                                      const v1::GetMemoryRequest* request,
                                      v1::Memory* response) override;
  grpc::ServerUnaryReactor* ListMemories(grpc::CallbackServerContext* rpc,
                                         const v1::ListMemoriesRequest* request,
                                         v1::ListMemoriesResponse* response) override;
  grpc::ServerUnaryReactor* SearchMemories(grpc::CallbackServerContext* rpc,
                                           const v1::SearchMemoriesRequest* request,
                                           v1::SearchMemoriesResponse* response) override;
  grpc::ServerUnaryReactor* DeleteMemory(grpc::CallbackServerContext* rpc,
                                         const v1::DeleteMemoryRequest* request,
                                         v1::Memory* response) override;
  grpc::ServerUnaryReactor* ExplainRoute(grpc::CallbackServerContext* rpc,
                                         const v1::ExplainRouteRequest* request,
                                         v1::ExplainRouteResponse* response) override;

 private:
  HandlerContext& context_;
};

}  // namespace kvasir::server
