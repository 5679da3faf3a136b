// LiveTurn: a turn from its acceptance until its last event: what the engine says becomes events
// and the turn's record.
//
// Owned by whoever runs it and by the streams that read it. Threads: as each part says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/base/clock.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/request.h"
#include "memory/service/records.h"
#include "router/server/chat_call.h"
#include "router/server/turn_log.h"

namespace kvasir::server {

class Metrics;

class LiveTurn final : public runtime::Sink, public std::enable_shared_from_this<LiveTurn> {
 public:
  // `accept_us`: monotonic time at which the call was accepted. Pointers must outlive it.
  LiveTurn(ChatCall wanted, int64_t accept_us, const base::Clock* clock, Metrics* metrics);

  const ChatCall call;
  const int64_t accept_us;
  TurnLog log;

  // The record while one thread prepares or finishes the turn; the engine's thread adds the reply
  // in between.
  service::TurnRecord record;
  // Called once on the engine's thread when the engine is done with it. Set before the engine is
  // asked.
  std::function<void(const runtime::Finish&)> on_finish;

  // Any thread, as all that follow. Number of the turn; 0 until it is durable.
  int64_t number() const;
  void SetNumber(int64_t number);
  // Asks the engine to run the request; a turn that was cancelled before is cancelled at once.
  base::Status Submit(runtime::Engine& engine, runtime::GenerateRequest request);
  // Ends the reply within one step.
  void Cancel();
  bool cancelled() const;

  // A stream reads it, or left.
  void ReaderCame();
  // `grace_us`: how long it goes on without a reader when it has a request_id.
  void ReaderLeft(int64_t now_us, int64_t grace_us);
  // Cancels it when nobody came back in time.
  void CancelIfForgotten(int64_t now_us);

  // Calls `ended` once when the log has ended; at once when it has. Few at a time.
  void OnEnd(std::function<void()> ended);
  // Ends the log and tells those who wait.
  void End(base::Status status);

  base::Status OnToken(const runtime::OutputToken& token) override;
  void OnFinish(const runtime::Finish& finish) override;

 private:
  const base::Clock* const clock_;
  Metrics* const metrics_;
  int64_t last_token_us_ = 0;  // the engine's thread

  mutable std::mutex mutex_;
  int64_t number_ = 0;
  bool cancelled_ = false;
  runtime::Engine* engine_ = nullptr;
  std::optional<runtime::RequestId> request_;
  int readers_ = 0;
  int64_t forgotten_at_us_ = 0;  // 0: it has a reader
  std::vector<std::function<void()>> waiting_for_end_;
};

}  // namespace kvasir::server
