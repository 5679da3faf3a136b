// Clocks: the fake one moves only when told to, the real one never goes back.
#include "engine/base/clock.h"

#include <gtest/gtest.h>

namespace kvasir::base {
namespace {

TEST(Clock, TheFakeOneMovesOnlyWhenToldTo) {
  FakeClock clock(1000);
  EXPECT_EQ(clock.WallMicros(), 1000);
  EXPECT_EQ(clock.WallMicros(), 1000);
  clock.Advance(5);
  EXPECT_EQ(clock.WallMicros(), 1005);
  EXPECT_EQ(clock.MonotonicMicros(), 1005);
}

TEST(Clock, TheRealOneNeverGoesBackAndCountsFrom1970) {
  RealClock clock;
  int64_t before = clock.MonotonicMicros();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = clock.MonotonicMicros();
    ASSERT_GE(now, before);
    before = now;
  }
  constexpr int64_t kYear2020 = 1577836800000000;
  EXPECT_GT(clock.WallMicros(), kYear2020);
}

}  // namespace
}  // namespace kvasir::base
