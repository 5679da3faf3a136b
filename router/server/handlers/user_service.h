// UserService: users and their erasure.
#pragma once

#include "kvasir/v1/user_service.grpc.pb.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

class UserHandlers final : public v1::UserService::CallbackService {
 public:
  explicit UserHandlers(HandlerContext* context) : context_(*context) {}

  grpc::ServerUnaryReactor* GetUser(grpc::CallbackServerContext* rpc,
                                    const v1::GetUserRequest* request, v1::User* response) override;
  grpc::ServerUnaryReactor* EraseUser(grpc::CallbackServerContext* rpc,
                                      const v1::EraseUserRequest* request,
                                      v1::Operation* response) override;
  grpc::ServerUnaryReactor* GetErasure(grpc::CallbackServerContext* rpc,
                                       const v1::GetErasureRequest* request,
                                       v1::Erasure* response) override;

 private:
  HandlerContext& context_;
};

}  // namespace kvasir::server
