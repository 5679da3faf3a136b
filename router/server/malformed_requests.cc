#include "router/server/malformed_requests.h"

#include "router/server/invalid_field.h"
#include "router/server/status_to_grpc.h"

namespace kvasir::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

class Rewriter final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      // Every method of every service is there: without a message it is gRPC's answer to bytes that
      // it could not parse.
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus(
            ToGrpc(InvalidField("request",
                                "is no message of its type, or holds text that is no "
                                "UTF-8")));
      }
    }
    methods->Proceed();
  }
};

}  // namespace

grpc::experimental::Interceptor* MalformedRequests::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo*) {
  return new Rewriter;
}

}  // namespace kvasir::server
