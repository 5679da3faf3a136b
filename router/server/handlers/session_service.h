// SessionService: conversations and their turns.
#pragma once

#include "kvasir/v1/session_service.grpc.pb.h"
#include "router/server/handlers/chat_stream.h"
#include "router/server/handlers/handler_context.h"

namespace kvasir::server {

class SessionHandlers final : public v1::SessionService::CallbackService {
 public:
  explicit SessionHandlers(HandlerContext* context) : context_(*context) {}
  ChatStreams& streams() { return streams_; }

  grpc::ServerUnaryReactor* CreateSession(grpc::CallbackServerContext* rpc,
                                          const v1::CreateSessionRequest* request,
                                          v1::Session* response) override;
  grpc::ServerUnaryReactor* GetSession(grpc::CallbackServerContext* rpc,
                                       const v1::GetSessionRequest* request,
                                       v1::Session* response) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* rpc,
                                         const v1::ListSessionsRequest* request,
                                         v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteSession(grpc::CallbackServerContext* rpc,
                                          const v1::DeleteSessionRequest* request,
                                          google::protobuf::Empty* response) override;
  grpc::ServerWriteReactor<v1::ChatResponse>* Chat(grpc::CallbackServerContext* rpc,
                                                   const v1::ChatRequest* request) override;
  grpc::ServerUnaryReactor* CancelTurn(grpc::CallbackServerContext* rpc,
                                       const v1::CancelTurnRequest* request,
                                       v1::Turn* response) override;
  grpc::ServerUnaryReactor* GetTurn(grpc::CallbackServerContext* rpc,
                                    const v1::GetTurnRequest* request, v1::Turn* response) override;
  grpc::ServerUnaryReactor* ListTurns(grpc::CallbackServerContext* rpc,
                                      const v1::ListTurnsRequest* request,
                                      v1::ListTurnsResponse* response) override;
  grpc::ServerUnaryReactor* CompactSession(grpc::CallbackServerContext* rpc,
                                           const v1::CompactSessionRequest* request,
                                           v1::Operation* response) override;

 private:
  HandlerContext& context_;
  ChatStreams streams_;
};

}  // namespace kvasir::server
