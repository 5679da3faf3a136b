// Clock: time as a parameter, so that a whole server can run from a fake one.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvasir::base {

class Clock {
 public:
  virtual ~Clock() = default;

  // Microseconds since the Unix epoch, UTC. May jump.
  virtual int64_t WallMicros() const = 0;
  // Microseconds since an arbitrary start. Never goes back.
  virtual int64_t MonotonicMicros() const = 0;
};

// The machine's clocks.
class RealClock final : public Clock {
 public:
  int64_t WallMicros() const override;
  int64_t MonotonicMicros() const override;
};

// A clock that moves only when told to (tests, simulation).
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t wall_us) : wall_us_(wall_us) {}
  int64_t WallMicros() const override { return wall_us_; }
  int64_t MonotonicMicros() const override { return wall_us_; }
  void Advance(int64_t us) { wall_us_ += us; }

 private:
  std::atomic<int64_t> wall_us_;
};

}  // namespace kvasir::base
