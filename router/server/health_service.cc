#include "router/server/health_service.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "router/server/status_to_grpc.h"

namespace kvasir::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Shared with the watchers, which may end after the service.
struct HealthService::State {
  std::vector<std::string> services;
  std::mutex mutex;
  bool serving = false;         // guarded by mutex
  bool shut_down = false;       // guarded by mutex
  std::set<Watcher*> watchers;  // guarded by mutex

  bool Knows(const std::string& service) const {
    return service.empty() || std::ranges::find(services, service) != services.end();
  }
};

// One Watch. Sends the state when it differs from what was sent last; one write at a time.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(std::shared_ptr<State> state, bool known) : state_(std::move(state)), known_(known) {}

  // Joins the list and sends the first answer, or ends the call. REQUIRES: no lock held.
  void Begin() {
    grpc::Status refusal = grpc::Status::OK;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->shut_down) {
        refusal =
            ToGrpc(base::WithReason(base::Unavailable("the server stops"), "SERVER_DRAINING"));
      } else if (state_->watchers.size() >= kHealthWatchesMax) {
        refusal =
            ToGrpc(base::ResourceExhausted("{} health watches are open, at most {} are allowed",
                                           state_->watchers.size(), kHealthWatchesMax));
      } else {
        state_->watchers.insert(this);
        SendLocked();
        return;
      }
      FinishLocked(refusal);
    }
  }

  // REQUIRES: state_->mutex held.
  void SendLocked() {
    const auto now = !known_           ? HealthCheckResponse::SERVICE_UNKNOWN
                     : state_->serving ? HealthCheckResponse::SERVING
                                       : HealthCheckResponse::NOT_SERVING;
    if (writing_ || finished_ || (sent_ && response_.status() == now)) return;
    response_.set_status(now);
    sent_ = writing_ = true;
    StartWrite(&response_);
  }

  // REQUIRES: state_->mutex held.
  void FinishLocked(const grpc::Status& status) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(state_->mutex);
    writing_ = false;
    if (!ok) {
      FinishLocked(grpc::Status::CANCELLED);
    } else {
      SendLocked();
    }
  }

  void OnCancel() override {
    const std::lock_guard lock(state_->mutex);
    FinishLocked(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->watchers.erase(this);
    }
    delete this;
  }

 private:
  const std::shared_ptr<State> state_;
  const bool known_;
  HealthCheckResponse response_;  // these four: guarded by state_->mutex
  bool sent_ = false;
  bool writing_ = false;
  bool finished_ = false;
};

HealthService::HealthService(std::vector<std::string> services)
    : state_(std::make_shared<State>()) {
  state_->services = std::move(services);
}

HealthService::~HealthService() { Shutdown(); }

void HealthService::SetServing(bool serving) {
  const std::lock_guard lock(state_->mutex);
  if (state_->shut_down) return;
  state_->serving = serving;
  for (Watcher* watcher : state_->watchers) watcher->SendLocked();
}

void HealthService::Shutdown() {
  const std::lock_guard lock(state_->mutex);
  state_->serving = false;
  state_->shut_down = true;
  const auto status =
      ToGrpc(base::WithReason(base::Unavailable("the server stops"), "SERVER_DRAINING"));
  for (Watcher* watcher : state_->watchers) watcher->FinishLocked(status);
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  auto* reactor = context->DefaultReactor();
  if (!state_->Knows(request->service())) {
    reactor->Finish(ToGrpc(base::NotFound("no such service")));
    return reactor;
  }
  const std::lock_guard lock(state_->mutex);
  response->set_status(state_->serving ? HealthCheckResponse::SERVING
                                       : HealthCheckResponse::NOT_SERVING);
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  auto* watcher = new Watcher(state_, state_->Knows(request->service()));
  watcher->Begin();
  return watcher;
}

}  // namespace kvasir::server
