// OperationService: what became of work in the background.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "kvasir/v1/operation_service.grpc.pb.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

inline constexpr size_t kOperationWaitsMax = 256;

class OperationHandlers final : public v1::OperationService::CallbackService {
 public:
  explicit OperationHandlers(HandlerContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* GetOperation(grpc::CallbackServerContext* rpc,
                                         const v1::GetOperationRequest* request,
                                         v1::Operation* response) override;
  grpc::ServerUnaryReactor* WaitOperation(grpc::CallbackServerContext* rpc,
                                          const v1::WaitOperationRequest* request,
                                          v1::Operation* response) override;
  // Looks again at the operations that are waited for. Called now and then.
  void Tick();
  // Ends every wait: the operation is returned as it is.
  void EndWaits();

 private:
  struct Wait {
    grpc::CallbackServerContext* rpc = nullptr;
    grpc::ServerUnaryReactor* reactor = nullptr;
    v1::Operation* response = nullptr;
    std::string id;
    int64_t until_us = 0;
  };
  // Ends the wait when the operation is done or the time is over; else it waits on.
  void Look(const std::shared_ptr<Wait>& wait);

  HandlerContext& context_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wait>> waits_;  // not being looked at
  size_t wait_count_ = 0;
  bool ending_ = false;
};

}  // namespace kvasir::server
