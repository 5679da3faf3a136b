// Metrics: the figures that Prometheus reads, all under kvasir_ (docs/operations.md).
//
// No label and no value names a user, a session or a text. Labels come from closed lists, so their
// number is bounded. Threads: all methods may be called concurrently; none blocks on I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::server {

// What one finished turn adds.
struct TurnFigures {
  int64_t computed_tokens = 0;
  int64_t session_cached_tokens = 0;
  int64_t memory_tokens = 0;  // what the mounted memories stand for, without the base
  int64_t output_tokens = 0;
  double ttft_s = 0;  // not counted when output_tokens is 0
};

// Figures of this moment.
struct Levels {
  int64_t running_turns = 0;
  int64_t queued_turns = 0;
  int64_t pending_jobs = 0;
  int64_t pending_erasures = 0;
  int64_t state_ram_bytes = 0;
  int64_t state_disk_bytes = 0;
  int64_t kv_used_bytes = 0;
  int64_t dropped_log_lines = 0;  // since the start
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One call ended: "SessionService/Chat", the gRPC code by name ("OK", "INVALID_ARGUMENT").
  void RecordCall(std::string_view method, std::string_view code);
  void RecordTurn(const TurnFigures& figures);
  // Seconds between two tokens of a reply.
  void RecordInterTokenLatency(double seconds);
  // A mounted memory: its tier in lower case ("ram", "disk") and the seconds of its restore.
  void RecordHit(std::string_view tier, double restore_s);
  // A candidate that was not mounted, by its reason in UPPER_SNAKE_CASE.
  void RecordMiss(std::string_view reason);
  // A stream of Chat that ended before its turn: "CLIENT_LEFT" or "SLOW_READER".
  void RecordLostStream(std::string_view reason);
  void SetLevels(const Levels& levels);

  // Serves the page /metrics on HOST:PORT until the object goes. Call at most once.
  // Errors: InvalidArgument (address), Unavailable (it cannot listen there).
  base::Status Expose(const std::string& address);
  // The page as Prometheus reads it (text format 0.0.4).
  std::string Page() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
