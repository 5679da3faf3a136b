// TinyServer: a whole kvasird with the tiny model in this process, on a loopback port, and a client
// of it; what the tests of the services stand on.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kvasir/v1/admin_service.grpc.pb.h"
#include "kvasir/v1/memory_service.grpc.pb.h"
#include "kvasir/v1/operation_service.grpc.pb.h"
#include "kvasir/v1/session_service.grpc.pb.h"
#include "kvasir/v1/user_service.grpc.pb.h"
#include "router/server/server.h"
#include "tests/support/temp_folder.h"

namespace kvasir::server {

using kvasir::testing::TempFolder;

// What one stream of Chat brought.
struct Reply {
  grpc::Status status;
  std::string reason;  // of ErrorInfo, when the status is an error
  std::vector<v1::ChatResponse> events;
  std::string text;
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  v1::Route route;
  v1::Usage usage;
  v1::FinishReason finish = v1::FINISH_REASON_UNSPECIFIED;
  std::string turn;
};

// Tokens of a user's message with its template, as the tiny model has them.
int64_t UserTurnTokens(const std::string& message);

// ErrorInfo's reason in the details of a status, or "".
std::string ReasonOf(const grpc::Status& status);

class TinyServer {
 public:
  explicit TinyServer(const std::string& data,
                      const std::function<void(Options&)>& change = nullptr);
  // Stops it.
  ~TinyServer();
  Server& server() { return *server_; }
  std::shared_ptr<grpc::Channel> NewChannel() const;

  v1::SessionService::Stub& sessions() { return *sessions_; }
  v1::MemoryService::Stub& memories() { return *memories_; }
  v1::UserService::Stub& users() { return *users_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  v1::OperationService::Stub& operations() { return *operations_; }

  // The name of a new session of `user`. REQUIRES: works.
  std::string NewSession(const std::string& user, v1::MemoryMode mode = v1::MEMORY_MODE_UNSPECIFIED,
                         const std::string& id = "");
  // A request with logprobs, temperature 0.8 and a fixed seed.
  static v1::ChatRequest Request(const std::string& session, const std::string& message,
                                 int32_t max_output_tokens = 16);
  // Reads the stream to its end; `on_event` (may be null) sees every event.
  Reply Chat(const v1::ChatRequest& request,
             const std::function<void(const v1::ChatResponse&)>& on_event = nullptr);
  // The reply to a message; the test fails when it is not OK.
  Reply Say(const std::string& session, const std::string& message, int32_t max_output_tokens = 16);
  // Closes the session and waits for its memory; its name, or "".
  std::string Close(const std::string& session);
  std::vector<v1::Memory> Memories(const std::string& user);
  bool Consistent();

 private:
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::SessionService::Stub> sessions_;
  std::unique_ptr<v1::MemoryService::Stub> memories_;
  std::unique_ptr<v1::UserService::Stub> users_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<v1::OperationService::Stub> operations_;
};

// A unary call without options.
template <typename Stub, typename Request, typename Response>
grpc::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  return (stub.*method)(&context, request, response);
}

}  // namespace kvasir::server
