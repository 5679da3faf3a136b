#include "router/server/handlers/handler_context.h"

#include <chrono>
#include <utility>

#include "router/server/status_to_grpc.h"
#include "router/server/validate.h"

namespace kvasir::server {
namespace {

// Names of the codes of gRPC, by number.
constexpr std::string_view kCodes[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

base::Status Draining() {
  return base::WithReason(base::Unavailable("the server is stopping"), "SERVER_DRAINING");
}

bool IsLate(const grpc::CallbackServerContext& rpc) {
  return rpc.deadline() <= std::chrono::system_clock::now();
}

}  // namespace

base::StatusOr<const Served*> HandlerContext::served() const {
  const Served* served = served_;
  if (served != nullptr) return served;
  if (draining_) return Draining();
  return base::WithReason(base::Unavailable("the model is being loaded"), "SERVER_LOADING");
}

base::StatusOr<const Served*> HandlerContext::served_for_change() const {
  if (draining_) return Draining();
  return served();
}

void HandlerContext::Record(const char* method, const base::Status& status) {
  const auto code = static_cast<size_t>(ToGrpc(status).error_code());
  metrics_->RecordCall(method, code < std::size(kCodes) ? kCodes[code] : "UNKNOWN");
}

void HandlerContext::Finish(grpc::ServerUnaryReactor* reactor, const char* method,
                            const base::Status& status) {
  Record(method, status);
  reactor->Finish(ToGrpc(status));
}

grpc::ServerUnaryReactor* HandlerContext::Run(grpc::CallbackServerContext* rpc, const char* method,
                                              Effect effect,
                                              const google::protobuf::Message* request, Work work) {
  grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
  base::Status status = ValidateRequest(*request);
  if (status.ok()) {
    status = (effect == Effect::kChanges ? served_for_change() : served()).status();
  }
  if (!status.ok()) {
    Finish(reactor, method, status);
    return reactor;
  }
  const bool accepted = pool_->Offer([this, rpc, reactor, method, work = std::move(work)] {
    base::Status result;
    const auto now = served();
    if (!now.ok()) {
      result = now.status();
    } else if (rpc->IsCancelled()) {
      result = base::Cancelled("the client left");
    } else if (IsLate(*rpc)) {
      result = base::DeadlineExceeded("the deadline passed before the work began");
    } else {
      result = work(**now);
    }
    Finish(reactor, method, result);
  });
  if (!accepted) {
    Finish(reactor, method,
           base::WithReason(base::ResourceExhausted("too many requests wait"), "QUEUE_FULL"));
  }
  return reactor;
}

}  // namespace kvasir::server
