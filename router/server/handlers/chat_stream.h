// ChatStream: one call of Chat, from the turn's log to the client, one message at a time.
//
// A client that takes nothing for too long is cancelled: the write that it does not take keeps the
// call from ending with a status of its own, so it gets a bare CANCELLED. The turn then goes on or
// ends as for any lost stream.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <vector>

#include "kvasir/v1/chat.pb.h"
#include "router/server/handlers/handler_context.h"
#include "router/server/live_turn.h"
#include "router/server/options.h"

namespace kvasir::server {

// The streams that are open. Threads: all methods may be called concurrently.
class ChatStreams {
 public:
  // A reactor that ends with `status` at once.
  static grpc::ServerWriteReactor<v1::ChatResponse>* Refuse(HandlerContext& context,
                                                            const base::Status& status);
  // A reactor that sends the events of `turn` behind `after_seq`.
  grpc::ServerWriteReactor<v1::ChatResponse>* Open(HandlerContext& context,
                                                   grpc::CallbackServerContext* rpc,
                                                   const Options& options,
                                                   std::shared_ptr<LiveTurn> turn,
                                                   int64_t after_seq);
  // Cancels streams whose client takes nothing. Called now and then.
  void Tick();

 private:
  class Stream;
  class Reactor;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> open_;
};

}  // namespace kvasir::server
