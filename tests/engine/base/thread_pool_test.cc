// ThreadPool: every item once, whatever the numbers of threads and items, many loops after each
// other (a thread that wakes late must find the loop it belongs to).
#include "engine/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace kvasir::base {
namespace {

// Runs one loop and says how often each item was visited; -1 when a thread number was out of range.
std::vector<int> Visits(ThreadPool& pool, int64_t items) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(items));
  std::atomic<bool> in_range{true};
  pool.ParallelFor(items, [&](int64_t item, int thread) {
    if (thread < 0 || thread >= pool.threads() || item < 0 || item >= items) in_range = false;
    counts[static_cast<size_t>(item)].fetch_add(1, std::memory_order_relaxed);
  });
  if (!in_range) return {-1};
  return {counts.begin(), counts.end()};
}

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, VisitsEveryItemOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const int64_t items : {0, 1, 2, 3, 4, 5, 63, 64, 65, 1000}) {
    EXPECT_EQ(Visits(pool, items), std::vector<int>(static_cast<size_t>(items), 1)) << items;
  }
}

TEST_P(ThreadPoolTest, VisitsEveryItemOnceInManyLoopsWithThreadsThatSleepAtOnce) {
  ThreadPool pool(GetParam(), /*spin_us=*/0);
  for (int loop = 0; loop < 500; ++loop) {
    const int64_t items = loop % 7;
    ASSERT_EQ(Visits(pool, items), std::vector<int>(static_cast<size_t>(items), 1)) << loop;
  }
}

TEST_P(ThreadPoolTest, MakesWritesOfItemsVisibleToTheCaller) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> plain(257, -1);
  for (int64_t loop = 0; loop < 100; ++loop) {
    pool.ParallelFor(257,
                     [&](int64_t item, int) { plain[static_cast<size_t>(item)] = item * loop; });
    int64_t sum = 0;
    for (const int64_t value : plain) sum += value;
    ASSERT_EQ(sum, loop * 256 * 257 / 2);
  }
}

TEST_P(ThreadPoolTest, NeverRunsTwoItemsOnOneThreadNumberAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> busy(static_cast<size_t>(GetParam()));
  std::atomic<int> clashes{0};
  pool.ParallelFor(2000, [&](int64_t, int thread) {
    if (busy[static_cast<size_t>(thread)].fetch_add(1) != 0) ++clashes;
    busy[static_cast<size_t>(thread)].fetch_sub(1);
  });
  EXPECT_EQ(clashes, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 4));

TEST(ThreadPool, RunsItemsOfOneLoopOnAllThreadsAtOnce) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  std::atomic<int> arrived{0};
  pool.ParallelFor(kThreads, [&](int64_t, int) {  // returns only if all four items run at once
    arrived.fetch_add(1);
    while (arrived.load() < kThreads) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, kThreads);
}

TEST(ThreadPool, HandsItemsOutInAscendingOrder) {
  ThreadPool pool(1);
  std::vector<int64_t> order;
  pool.ParallelFor(5, [&](int64_t item, int) { order.push_back(item); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, CanBeMadeAndDestroyedWithoutALoop) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4, /*spin_us=*/0);
}

}  // namespace
}  // namespace kvasir::base
