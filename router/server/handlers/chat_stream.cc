#include "router/server/handlers/chat_stream.h"

#include <algorithm>
#include <utility>

#include "router/server/handlers/to_proto.h"
#include "router/server/status_to_grpc.h"

namespace kvasir::server {
namespace {

constexpr char kMethod[] = "SessionService/Chat";
// A reader with a full buffer that has taken nothing for so long is slow.
constexpr int64_t kFullBufferUs = 5'000'000;

using Base = grpc::ServerWriteReactor<v1::ChatResponse>;

class Refusal final : public Base {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

// What reads the log; outlives the reactor where the log still tells it of news.
class ChatStreams::Stream final : public TurnLog::Reader,
                                  public std::enable_shared_from_this<ChatStreams::Stream> {
 public:
  Stream(HandlerContext& context, grpc::CallbackServerContext* rpc, const Options& options,
         std::shared_ptr<LiveTurn> turn, int64_t after_seq)
      : context_(context), rpc_(rpc), options_(options), turn_(std::move(turn)), sent_(after_seq) {}

  void Begin(Base* reactor) {
    {
      const std::lock_guard lock(mutex_);
      reactor_ = reactor;
    }
    turn_->ReaderCame();
    turn_->log.Attach(shared_from_this());
  }

  void OnNews() override {
    std::unique_lock lock(mutex_);
    Next(lock);
  }

  void OnWritten(bool ok) {
    std::unique_lock lock(mutex_);
    writing_ = false;
    ++sent_;
    if (!ok) gone_ = true;
    Next(lock);
  }

  void OnCancelled() {
    std::unique_lock lock(mutex_);
    gone_ = true;
    Next(lock);
  }

  // The reactor goes.
  void OnDone() {
    turn_->log.Detach(this);
    const std::lock_guard lock(mutex_);
    reactor_ = nullptr;
    turn_->ReaderLeft(context_.clock().MonotonicMicros(), options_.reply_grace_s * 1'000'000);
  }

  void CancelIfSlow() {
    const std::lock_guard lock(mutex_);
    if (!writing_ || reactor_ == nullptr) return;
    const int64_t waited = context_.clock().MonotonicMicros() - write_us_;
    const bool full = turn_->log.size() - sent_ > options_.stream_buffer_events_max;
    if (waited > options_.slow_reader_s_max * 1'000'000 || (full && waited > kFullBufferUs)) {
      slow_ = true;
      rpc_->TryCancel();
    }
  }

 private:
  // Writes the next event, or ends the call, unless a write is on its way.
  void Next(std::unique_lock<std::mutex>& lock) {
    if (reactor_ == nullptr || writing_ || finished_) return;
    if (gone_) {
      context_.metrics().RecordLostStream(slow_ ? "SLOW_READER" : "CLIENT_LEFT");
      End(lock, base::Cancelled("the client {}", slow_ ? "did not read" : "left"));
      return;
    }
    if (const auto end = turn_->log.EndAfter(sent_)) {
      End(lock, *end);
      return;
    }
    if (sent_ >= turn_->log.size()) return;
    const int64_t seq = sent_ + 1;
    response_ = ToProto(turn_->call.user.user, turn_->call.session, turn_->number(), seq,
                        turn_->log.Get(seq));
    writing_ = true;
    write_us_ = context_.clock().MonotonicMicros();
    Base* const reactor = reactor_;
    lock.unlock();  // the reactor stays until Finish
    reactor->StartWrite(&response_);
  }

  void End(std::unique_lock<std::mutex>& lock, const base::Status& status) {
    finished_ = true;
    Base* const reactor = reactor_;
    lock.unlock();
    context_.Record(kMethod, status);
    reactor->Finish(ToGrpc(status));
  }

  HandlerContext& context_;
  grpc::CallbackServerContext* const rpc_;
  const Options& options_;
  const std::shared_ptr<LiveTurn> turn_;

  std::mutex mutex_;
  Base* reactor_ = nullptr;  // null: gone
  int64_t sent_ = 0;         // events written
  bool writing_ = false;
  bool gone_ = false;  // the client
  bool slow_ = false;  // it took nothing for too long: gone by the server's will
  bool finished_ = false;
  int64_t write_us_ = 0;
  v1::ChatResponse response_;  // on its way while `writing_`
};

class ChatStreams::Reactor final : public Base {
 public:
  explicit Reactor(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  void Begin() { stream_->Begin(this); }
  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }
  void OnCancel() override { stream_->OnCancelled(); }
  void OnDone() override {
    stream_->OnDone();
    delete this;
  }

 private:
  const std::shared_ptr<Stream> stream_;
};

grpc::ServerWriteReactor<v1::ChatResponse>* ChatStreams::Refuse(HandlerContext& context,
                                                                const base::Status& status) {
  context.Record(kMethod, status);
  return new Refusal(ToGrpc(status));
}

grpc::ServerWriteReactor<v1::ChatResponse>* ChatStreams::Open(HandlerContext& context,
                                                              grpc::CallbackServerContext* rpc,
                                                              const Options& options,
                                                              std::shared_ptr<LiveTurn> turn,
                                                              int64_t after_seq) {
  auto stream = std::make_shared<Stream>(context, rpc, options, std::move(turn), after_seq);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
    open_.push_back(stream);
  }
  auto* reactor = new Reactor(std::move(stream));
  reactor->Begin();
  return reactor;
}

void ChatStreams::Tick() {
  std::vector<std::shared_ptr<Stream>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : open_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  for (const auto& stream : open) stream->CancelIfSlow();
}

}  // namespace kvasir::server
