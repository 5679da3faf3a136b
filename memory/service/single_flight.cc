#include "memory/service/single_flight.h"

#include "absl/time/time.h"

namespace kvasir::service {

base::Status LoadTimeout() {
  return base::WithReason(base::DeadlineExceeded("the state was not loaded in time"),
                          "LOAD_TIMEOUT");
}

bool SingleFlight::Wait(int64_t deadline_us) {
  const int64_t left_us = deadline_us - clock_->MonotonicMicros();
  if (left_us <= 0) return false;
  changed_.WaitWithTimeout(&mutex_, absl::Microseconds(left_us));
  return true;
}

SingleFlight::Result SingleFlight::Run(const StateCache::Key& key, int64_t deadline_us,
                                       const std::function<Result()>& load) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto found = flights_.find(key);
    if (found == flights_.end()) break;
    const std::shared_ptr<Flight> flight = found->second;
    while (!flight->done) {
      if (!Wait(deadline_us) && !flight->done) return LoadTimeout();
    }
    if (flight->result.status().code() != absl::StatusCode::kDeadlineExceeded) {
      return flight->result;
    }
  }
  const auto flight = std::make_shared<Flight>();
  flights_[key] = flight;
  flight->result = LoadTimeout();
  bool may_run = true;
  while (running_ >= at_once_max_ && may_run) may_run = Wait(deadline_us);
  if (may_run) {
    ++running_;
    mutex_.Unlock();
    Result result = load();
    mutex_.Lock();
    --running_;
    flight->result = std::move(result);
  }
  flight->done = true;
  flights_.erase(key);
  changed_.SignalAll();
  return flight->result;
}

}  // namespace kvasir::service
