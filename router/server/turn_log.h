// TurnLog: the events of one turn in order, from one writer to any number of readers that come and
// go; every reader sees all events behind the one it names.
//
// Bounded: a turn has at most max_output_tokens + 3 events; a reader keeps none of its own.
// Threads: all methods may be called concurrently; none blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/status.h"
#include "memory/service/records.h"
#include "router/server/route_info.h"

namespace kvasir::server {

// One token of the reply.
struct DeltaEvent {
  std::string text;  // what became certain with it; often empty
  int32_t token = 0;
  std::optional<double> logprob;
};

struct FinishEvent {
  std::string reason;  // TurnRecord::finish_reason
};

using TurnEvent = std::variant<RouteInfo, DeltaEvent, service::TurnUsage, FinishEvent>;

class TurnLog {
 public:
  // Told that there may be something new to read. Called on the writer's thread: must not block,
  // and may call the log.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void OnNews() = 0;
  };

  // Adds event number size() + 1. REQUIRES: not ended.
  void Append(TurnEvent event);
  // No more events; readers that have read all of them get `status`. The first call counts.
  void Close(base::Status status);
  // Calls OnNews of every reader. REQUIRES: no lock is held that a reader takes.
  void TellReaders();

  // Number of events.
  int64_t size() const;
  // Event `seq`, from 1 on. REQUIRES: 1 ≤ seq ≤ size().
  TurnEvent Get(int64_t seq) const;
  // The end, once there will be no event after `seq`.
  std::optional<base::Status> EndAfter(int64_t seq) const;
  bool ended() const;

  // OnNews is called from now on until `reader` goes; at once when the log has ended.
  void Attach(const std::shared_ptr<Reader>& reader);
  void Detach(const Reader* reader);

 private:
  std::vector<std::shared_ptr<Reader>> Readers() const;

  mutable std::mutex mutex_;
  std::vector<TurnEvent> events_;
  std::optional<base::Status> end_;
  std::vector<std::weak_ptr<Reader>> readers_;
};

}  // namespace kvasir::server
