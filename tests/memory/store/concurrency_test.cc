// Several threads on one store: every acknowledged change is there, sweeps take no live segment,
// flushes are shared.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

constexpr int kThreads = 6;
constexpr uint64_t kCommits = 30;

uint64_t SeedOf(int thread, uint64_t i) { return uint64_t(thread) * 1000 + i; }

// Runs `body(thread)` on kThreads threads.
void Parallel(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(StoreConcurrency, EveryAcknowledgedCommitIsThere) {
  const TempDir temp;
  auto store = OpenOrDie(TestOptions(temp.path()));
  std::atomic<int> failures = 0;
  std::atomic<int> finished = 0;
  std::thread sweeper([&] {
    while (finished < kThreads) failures += !store->SweepOrphans().ok();
  });
  Parallel([&](int thread) {
    for (uint64_t i = 0; i < kCommits; ++i) {
      Batch batch;
      batch.Put(Key(thread, Kind::kTurn, 1, i), Bytes(SeedOf(thread, i), 500));
      batch.AddSegment(User(thread), Segment(*store, thread, SeedOf(thread, i)));
      if (i >= 2) batch.DropSegment(User(thread), SegmentIdOf(SeedOf(thread, i - 2)));
      failures += !store->Commit(batch).ok();
      failures += !CheckSegment(*store, thread, SeedOf(thread, i)).ok();
    }
    ++finished;
  });
  sweeper.join();
  EXPECT_EQ(failures, 0);
  const Stats stats = store->GetStats();
  EXPECT_EQ(stats.commits, kThreads * kCommits);
  EXPECT_LE(stats.states_flushes, kThreads * kCommits);
  for (int reopened = 0; reopened < 2; ++reopened) {
    for (int thread = 0; thread < kThreads; ++thread) {
      EXPECT_EQ(AllRecords(*store, User(thread)).size(), kCommits);
      EXPECT_EQ(store->ListSegments(User(thread), {}, 100).value().segments.size(), 2u);
      for (const uint64_t i : {kCommits - 2, kCommits - 1}) {
        const base::Status status = CheckSegment(*store, thread, SeedOf(thread, i));
        EXPECT_TRUE(status.ok()) << thread << " " << i << ": " << status;
      }
    }
    store.reset();
    store = OpenOrDie(TestOptions(temp.path()));
  }
  EXPECT_EQ(store->SweepOrphans().value().orphans_removed, 0u);
}

TEST(StoreConcurrency, DroppingOneUserDisturbsNoOther) {
  const TempDir temp;
  const auto store = OpenOrDie(TestOptions(temp.path()));
  std::atomic<int> failures = 0;
  Parallel([&](int thread) {
    for (uint64_t i = 0; i < kCommits; ++i) {
      Batch batch;
      batch.Put(Key(thread, Kind::kTurn, 1, i), Bytes(i, 2000));
      batch.AddSegment(User(thread), Segment(*store, thread, SeedOf(thread, i)));
      failures += !store->Commit(batch).ok();
      if (thread == 0 && i % 5 == 4) failures += !store->DropUser(User(0)).ok();
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(AllRecords(*store, User(0)).empty());
  for (int thread = 1; thread < kThreads; ++thread) {
    EXPECT_EQ(AllRecords(*store, User(thread)).size(), kCommits);
    EXPECT_TRUE(store->FindBrokenSegments(User(thread)).value().empty());
  }
  EXPECT_EQ(store->SweepOrphans().value().orphans_removed, 0u);
}

}  // namespace
}  // namespace kvasir::store
