// HandlerContext: what all gRPC handlers share, and the one way in which a unary method runs:
// checks on gRPC's thread, work on the pool, status and metrics at the end.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "router/server/metrics.h"
#include "router/server/page_token.h"
#include "router/server/work_pool.h"

namespace kvasir::service {
class MemoryTier;
}

namespace kvasir::server {

class ChatTurns;
class LiveSessions;
class ModelHost;
struct Options;

inline constexpr char kTenant[] = "default";  // without credentials there is one

// What is there once the model is loaded.
struct Served {
  const Options* options = nullptr;
  ModelHost* host = nullptr;
  service::MemoryTier* tier = nullptr;
  LiveSessions* sessions = nullptr;
  ChatTurns* turns = nullptr;
  int64_t start_us = 0;  // wall time
  int threads = 0;
};

class HandlerContext {
 public:
  HandlerContext(WorkPool* pool, Metrics* metrics, const base::Clock* clock, base::Entropy* entropy,
                 std::string page_token_key)
      : pool_(pool),
        metrics_(metrics),
        clock_(clock),
        entropy_(entropy),
        page_tokens_(std::move(page_token_key)) {}

  // Null: not yet, or no more.
  void SetServed(const Served* served) { served_ = served; }
  // From now on calls that change something are refused.
  void Drain() { draining_ = true; }
  // Errors: Unavailable reason SERVER_LOADING, or SERVER_DRAINING when it is over.
  base::StatusOr<const Served*> served() const;
  // The same for a call that changes something. Errors: also Unavailable reason SERVER_DRAINING.
  base::StatusOr<const Served*> served_for_change() const;

  WorkPool& pool() { return *pool_; }
  Metrics& metrics() { return *metrics_; }
  const base::Clock& clock() const { return *clock_; }
  base::Entropy& entropy() { return *entropy_; }
  const PageTokens& page_tokens() const { return page_tokens_; }

  using Work = std::function<base::Status(const Served&)>;
  enum class Effect { kReads, kChanges };
  // Ends the call with what `work` returns on a work thread, or before that with what is wrong with
  // `request`. `method`: "SessionService/GetSession".
  // What changes something is refused while the server drains; what was accepted before goes on.
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* rpc, const char* method, Effect effect,
                                const google::protobuf::Message* request, Work work);
  // Ends a call that a handler runs itself.
  void Finish(grpc::ServerUnaryReactor* reactor, const char* method, const base::Status& status);
  void Record(const char* method, const base::Status& status);

 private:
  WorkPool* const pool_;
  Metrics* const metrics_;
  const base::Clock* const clock_;
  base::Entropy* const entropy_;
  const PageTokens page_tokens_;
  std::atomic<const Served*> served_ = nullptr;
  std::atomic<bool> draining_ = false;
};

}  // namespace kvasir::server
