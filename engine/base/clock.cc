#include "engine/base/clock.h"

#include <chrono>

namespace kvasir::base {
namespace {

template <typename C>
int64_t MicrosSinceEpoch() {
  return std::chrono::duration_cast<std::chrono::microseconds>(C::now().time_since_epoch()).count();
}

}  // namespace

int64_t RealClock::WallMicros() const { return MicrosSinceEpoch<std::chrono::system_clock>(); }
int64_t RealClock::MonotonicMicros() const { return MicrosSinceEpoch<std::chrono::steady_clock>(); }

}  // namespace kvasir::base
