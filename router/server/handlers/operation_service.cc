#include "router/server/handlers/operation_service.h"

#include <chrono>
#include <utility>

#include "router/server/handlers/operations.h"
#include "router/server/resource_names.h"
#include "router/server/validate.h"

namespace kvasir::server {
namespace {

constexpr char kWaitMethod[] = "OperationService/WaitOperation";
constexpr int64_t kTimeoutDefaultUs = 60'000'000;

int64_t TimeoutUs(const v1::WaitOperationRequest& request) {
  if (!request.has_timeout()) return kTimeoutDefaultUs;
  return request.timeout().seconds() * 1'000'000 + request.timeout().nanos() / 1000;
}

}  // namespace

grpc::ServerUnaryReactor* OperationHandlers::GetOperation(grpc::CallbackServerContext* rpc,
                                                          const v1::GetOperationRequest* request,
                                                          v1::Operation* response) {
  return context_.Run(rpc, "OperationService/GetOperation", HandlerContext::Effect::kReads, request,
                      [request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const std::string id,
                                                ParseOperationName(request->name(), "name"));
                        KVASIR_ASSIGN_OR_RETURN(*response, FindOperation(*served.tier, id));
                        return base::OkStatus();
                      });
}

grpc::ServerUnaryReactor* OperationHandlers::WaitOperation(grpc::CallbackServerContext* rpc,
                                                           const v1::WaitOperationRequest* request,
                                                           v1::Operation* response) {
  grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
  base::Status status = ValidateRequest(*request);
  auto id = ParseOperationName(request->name(), "name");
  if (status.ok()) status = id.status();
  if (status.ok()) status = context_.served().status();
  if (status.ok()) {
    const std::lock_guard lock(mutex_);
    if (wait_count_ >= kOperationWaitsMax) {
      status = base::WithReason(
          base::ResourceExhausted("{} calls wait, at most {} may", wait_count_, kOperationWaitsMax),
          "QUEUE_FULL");
    } else {
      ++wait_count_;
    }
  }
  if (!status.ok()) {
    context_.Finish(reactor, kWaitMethod, status);
    return reactor;
  }
  const auto wait = std::make_shared<Wait>();
  wait->rpc = rpc;
  wait->reactor = reactor;
  wait->response = response;
  wait->id = *std::move(id);
  wait->until_us = context_.clock().MonotonicMicros() + TimeoutUs(*request);
  context_.pool().Post([this, wait] { Look(wait); });
  return reactor;
}

void OperationHandlers::Look(const std::shared_ptr<Wait>& wait) {
  base::Status status = context_.served().status();
  bool over = !status.ok() || wait->rpc->IsCancelled() ||
              context_.clock().MonotonicMicros() >= wait->until_us;
  if (status.ok()) {
    const Served& served = **context_.served();
    auto operation = FindOperation(*served.tier, wait->id);
    status = operation.status();
    over = over || !status.ok() || operation->done();
    if (operation.ok()) *wait->response = *std::move(operation);
  }
  {
    const std::lock_guard lock(mutex_);
    if (!over && !ending_) {
      waits_.push_back(wait);
      return;
    }
    --wait_count_;
  }
  context_.Finish(wait->reactor, kWaitMethod, status);
}

void OperationHandlers::Tick() {
  std::vector<std::shared_ptr<Wait>> waits;
  {
    const std::lock_guard lock(mutex_);
    waits.swap(waits_);
  }
  for (const auto& wait : waits) context_.pool().Post([this, wait] { Look(wait); });
}

void OperationHandlers::EndWaits() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  Tick();
}

}  // namespace kvasir::server
