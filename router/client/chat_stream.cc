#include "router/client/chat_stream.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/check.h"
#include "router/client/output.h"

namespace kvasir::client {
namespace {

// Waits for interrupts beside a stream that blocks, and cancels.
class Canceller {
 public:
  Canceller(Connection& connection, grpc::ClientContext& context, Interrupt* interrupt)
      : connection_(connection), context_(context), interrupt_(interrupt) {
    if (interrupt_ == nullptr) return;
    done_ = eventfd(0, EFD_CLOEXEC);
    KVASIR_CHECK(done_ >= 0);
    thread_ = std::thread([this] { Run(); });
  }

  ~Canceller() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    KVASIR_CHECK(write(done_, &one, sizeof one) == sizeof one);
    thread_.join();
    close(done_);
  }

  void SetTurn(const std::string& turn) {
    const std::lock_guard lock(mutex_);
    turn_ = turn;
  }

 private:
  void Run() {
    bool asked = false;
    while (true) {
      pollfd fds[2] = {{interrupt_->fd(), POLLIN, 0}, {done_, POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      if (!interrupt_->Take()) continue;
      if (asked || !CancelTurn()) context_.TryCancel();
      asked = true;
    }
  }

  // False when the turn is not known yet or the call failed.
  bool CancelTurn() {
    v1::CancelTurnRequest request;
    {
      const std::lock_guard lock(mutex_);
      request.set_name(turn_);
    }
    if (request.name().empty()) return false;
    return connection_
        .Call(connection_.sessions(), &v1::SessionService::Stub::CancelTurn, request,
              std::chrono::seconds(5))
        .ok();
  }

  Connection& connection_;
  grpc::ClientContext& context_;
  Interrupt* const interrupt_;
  int done_ = -1;
  std::mutex mutex_;
  std::string turn_;  // guarded by mutex_
  std::thread thread_;
};

void Take(v1::ChatResponse& event, Reply* reply,
          const std::function<void(std::string_view)>& on_text) {
  if (!event.turn().empty()) reply->turn = event.turn();
  switch (event.event_case()) {
    case v1::ChatResponse::kRoute:
      reply->route.Swap(event.mutable_route());
      return;
    case v1::ChatResponse::kDelta:
      reply->text += event.delta().text();
      if (!event.delta().text().empty()) on_text(event.delta().text());
      return;
    case v1::ChatResponse::kUsage:
      reply->usage.Swap(event.mutable_usage());
      return;
    case v1::ChatResponse::kFinish:
      reply->turn = event.finish().turn();
      reply->finish_reason = event.finish().reason();
      return;
    case v1::ChatResponse::EVENT_NOT_SET:
      return;
  }
}

}  // namespace

base::StatusOr<Reply> RunTurn(Connection& connection, const v1::ChatRequest& request,
                              const std::function<void(std::string_view)>& on_text,
                              Interrupt* interrupt) {
  Reply reply;
  reply.session = request.session();
  grpc::ClientContext context;
  grpc::Status status;
  {
    Canceller canceller(connection, context, interrupt);
    const auto stream = connection.sessions().Chat(&context, request);
    v1::ChatResponse event;
    while (stream->Read(&event)) {
      Take(event, &reply, on_text);
      canceller.SetTurn(reply.turn);
    }
    status = stream->Finish();
  }
  if (!status.ok()) return FromGrpc(status, connection.address(), request.session());
  if (reply.finish_reason == v1::FINISH_REASON_UNSPECIFIED) {
    return base::DataLoss("the stream of {} ended without a finish event", reply.turn);
  }
  return reply;
}

std::string ReplyJson(const Reply& reply) {
  nlohmann::ordered_json json;
  json["session"] = reply.session;
  json["turn"] = reply.turn;
  json["text"] = reply.text;
  json["finish_reason"] = v1::FinishReason_Name(reply.finish_reason);
  json["usage"] = nlohmann::ordered_json::parse(ToJson(reply.usage));
  json["route"] = nlohmann::ordered_json::parse(ToJson(reply.route));
  return json.dump();
}

}  // namespace kvasir::client
