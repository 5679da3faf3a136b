// Server: kvasird as one object: it listens, loads the model, opens the memory tier and connects
// them. Time and randomness are given, so that tests can run whole servers in one process.
//
// Threads: Start, Load, Drain and Stop from one thread, in this order; Drain and Stop may be called
// at any time after Start.
#pragma once

#include <functional>
#include <memory>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "router/server/metrics.h"
#include "router/server/options.h"

namespace kvasir::server {

class Server {
 public:
  // Listens; every call but health is refused with SERVER_LOADING until Load is done. `clock` and
  // `entropy` must outlive the result.
  // Errors: InvalidArgument (an address), Unavailable (it cannot listen there).
  static base::StatusOr<std::unique_ptr<Server>> Start(const Options& options,
                                                       const base::Clock* clock,
                                                       base::Entropy* entropy);
  // As Stop.
  ~Server();

  // Loads the model and opens the data folder, then serves. `progress` (may be null): share of the
  // model loaded. Errors: those of ModelHost::Load and MemoryTier::Open.
  base::Status Load(const std::function<void(double)>& progress);

  // From now on health says NOT_SERVING and calls that change something are refused; CancelTurn and
  // those that read are served, and running turns go on. Idempotent.
  void Drain();
  // Drains and stops: running turns get options.drain_s seconds and are then cancelled; what ended
  // is stored. Blocks. Idempotent.
  void Stop();

  int port() const;
  const Metrics& metrics() const;

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::server
