// StateCache: bounds by bytes, the reserve of each user, purges. SingleFlight: one load per state.
#include "memory/service/state_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "memory/service/single_flight.h"
#include "tests/memory/service/test_builder.h"

namespace kvasir::service {
namespace {

StateCache::Key Key(uint8_t user, uint8_t state) {
  StateCache::Key key;
  key.user.bytes[0] = user;
  key.state.bytes[0] = state;
  return key;
}
store::RecordId Memory(uint8_t id) { return {{id}}; }

SegmentPtr State() { return TestTail().Next(10, 1); }
size_t StateBytes() { return State()->bytes(); }

TEST(StateCache, KeepsTheMostRecentWithinItsBytes) {
  StateCache cache(3 * StateBytes(), 0);
  for (uint8_t i = 1; i <= 3; ++i) cache.Put(Key(1, i), Memory(i), State());
  EXPECT_NE(cache.Get(Key(1, 1)), nullptr);  // 2 is now the oldest
  cache.Put(Key(1, 4), Memory(4), State());
  EXPECT_EQ(cache.Get(Key(1, 2)), nullptr);
  EXPECT_NE(cache.Get(Key(1, 1)), nullptr);
  EXPECT_EQ(cache.bytes(), 3 * StateBytes());
}

TEST(StateCache, AStateOverTheBoundIsNotKeptAndEvictsNothing) {
  StateCache cache(StateBytes(), 0);
  cache.Put(Key(1, 1), Memory(1), State());
  cache.Put(Key(1, 2), Memory(2), TestTail().Next(11, 1));
  EXPECT_NE(cache.Get(Key(1, 1)), nullptr);
  EXPECT_EQ(cache.Get(Key(1, 2)), nullptr);
}

TEST(StateCache, AUserWithinTheReserveLosesNothingToAGreedyOne) {
  StateCache cache(4 * StateBytes(), 2 * StateBytes());
  cache.Put(Key(1, 1), Memory(1), State());
  for (uint8_t i = 1; i <= 20; ++i) cache.Put(Key(2, i), Memory(i), State());
  EXPECT_NE(cache.Get(Key(1, 1)), nullptr);
  EXPECT_EQ(cache.count({{2}}), 3u);
}

TEST(StateCache, WithEveryUserWithinTheReserveTheOldestGoes) {
  StateCache cache(2 * StateBytes(), 100 * StateBytes());
  for (uint8_t user = 1; user <= 3; ++user) cache.Put(Key(user, 1), Memory(1), State());
  EXPECT_EQ(cache.Get(Key(1, 1)), nullptr);
  EXPECT_NE(cache.Get(Key(2, 1)), nullptr);
  EXPECT_NE(cache.Get(Key(3, 1)), nullptr);
}

TEST(StateCache, PurgesTakeTheMemoryOrTheUserAndNothingElse) {
  StateCache cache(100 * StateBytes(), 0);
  for (uint8_t user = 1; user <= 2; ++user) {
    for (uint8_t i = 1; i <= 3; ++i) cache.Put(Key(user, i), Memory(i / 2), State());
  }
  cache.PurgeMemory({{1}}, Memory(1));  // states 2 and 3
  EXPECT_NE(cache.Get(Key(1, 1)), nullptr);
  EXPECT_EQ(cache.Get(Key(1, 2)), nullptr);
  EXPECT_EQ(cache.Get(Key(1, 3)), nullptr);
  EXPECT_EQ(cache.count({{2}}), 3u);
  cache.PurgeUser({{2}});
  EXPECT_EQ(cache.bytes(), StateBytes());
}

TEST(SingleFlight, OneLoadServesAllWhoCome) {
  base::RealClock clock;
  SingleFlight flights(&clock, 4);
  const int64_t deadline_us = clock.MonotonicMicros() + int64_t{600} * 1000000;
  std::atomic<int> loads = 0, arrived = 0;
  const auto load = [&]() -> SingleFlight::Result {
    ++loads;
    while (arrived < 8) std::this_thread::yield();
    return State();
  };
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ++arrived;
      good += flights.Run(Key(1, 1), deadline_us, load).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  // Who arrives after the flight has landed loads again; the cache in front of it prevents that.
  EXPECT_GE(loads, 1);
}

TEST(SingleFlight, LoadsAtOnceAreBounded) {
  base::RealClock clock;
  SingleFlight flights(&clock, 2);
  const int64_t deadline_us = clock.MonotonicMicros() + int64_t{600} * 1000000;
  std::atomic<int> now = 0, most = 0;
  std::vector<std::thread> threads;
  for (uint8_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto result = flights.Run(Key(1, i), deadline_us, [&]() -> SingleFlight::Result {
        const int mine = ++now;
        for (int seen = most; mine > seen && !most.compare_exchange_weak(seen, mine);) {
        }
        std::this_thread::yield();
        --now;
        return State();
      });
      EXPECT_TRUE(result.ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2);
}

TEST(SingleFlight, WhoWaitsLongerTakesOverFromALoadThatTimedOut) {
  base::RealClock clock;
  SingleFlight flights(&clock, 2);
  std::atomic<bool> loading = false, waiting = false;
  std::thread first([&] {
    const auto result =
        flights.Run(Key(1, 1), clock.MonotonicMicros() + 1000000, [&]() -> SingleFlight::Result {
          loading = true;
          while (!waiting) std::this_thread::yield();
          return LoadTimeout();
        });
    EXPECT_EQ(base::Reason(result.status()), "LOAD_TIMEOUT");
  });
  while (!loading) std::this_thread::yield();  // the first flight is the one that is joined
  const auto second = [&] {
    waiting = true;
    return flights.Run(Key(1, 1), clock.MonotonicMicros() + int64_t{600} * 1000000,
                       []() -> SingleFlight::Result { return State(); });
  }();
  EXPECT_TRUE(second.ok()) << second.status();
  first.join();
}

TEST(SingleFlight, ADeadlineThatHasPassedIsATimeout) {
  base::FakeClock clock(1000);
  SingleFlight flights(&clock, 0);  // no load may run
  const auto result = flights.Run(Key(1, 1), 999, []() -> SingleFlight::Result { return State(); });
  EXPECT_EQ(base::Reason(result.status()), "LOAD_TIMEOUT");
}

}  // namespace
}  // namespace kvasir::service
