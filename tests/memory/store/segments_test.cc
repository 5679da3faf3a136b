// Segments: a segment is there with its row or not at all; orphans are swept, live ones never.
// Method: chunks are removed or planted below the store through States, opened while it is closed.
#include <gtest/gtest.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>

#include <functional>
#include <set>

#include "memory/store/states.h"
#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

class Segments : public testing::Test {
 protected:
  Segments() : store_(OpenOrDie(TestOptions(temp_.path()))) {}
  void Reopen() {
    store_.reset();
    store_ = OpenOrDie(TestOptions(temp_.path()));
  }
  base::Status Add(int user, uint64_t seed) {
    return store_->Commit(Batch().AddSegment(User(user), Segment(*store_, user, seed)));
  }
  // Runs `change` on the chunks while the store is closed.
  void Below(const std::function<base::Status(States&)>& change) {
    store_.reset();
    const Options options = TestOptions(temp_.path());
    auto instance = Instance::OpenStates({.path = temp_.path() + "/states",
                                          .limits = &options,
                                          .cache = rocksdb::NewLRUCache(1 << 20)});
    ASSERT_TRUE(instance.ok()) << instance.status();
    {
      States states(std::move(instance).value());
      const base::Status status = change(states);
      ASSERT_TRUE(status.ok()) << status;
    }
    store_ = OpenOrDie(options);
  }

  TempDir temp_;
  std::unique_ptr<Store> store_;
};

TEST_F(Segments, AreReadAsTheyWereEncodedAlsoAfterReopening) {
  for (const uint64_t seed : {0, 1, 255, 299}) ASSERT_TRUE(Add(1, seed).ok());
  for (int i = 0; i < 2; ++i) {
    for (const uint64_t seed : {0, 1, 255, 299}) {
      EXPECT_TRUE(CheckSegment(*store_, 1, seed).ok()) << CheckSegment(*store_, 1, seed);
    }
    Reopen();
  }
  const SegmentRow row = store_->GetSegment(User(1), SegmentIdOf(299)).value();
  EXPECT_EQ(row.chunk_count, 4);  // 300 tokens, 9 layers
  EXPECT_EQ(row.bytes, store_->ReadSegment(User(1), SegmentIdOf(299)).value().bytes());
  EXPECT_TRUE(store_->ReadHeader(User(1), SegmentIdOf(299)).ok());
  EXPECT_TRUE(store_->ReadChunk(User(1), SegmentIdOf(299), 3).ok());
  for (const int chunk : {-1, 4}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(store_->ReadChunk(User(1), SegmentIdOf(299), chunk).status()));
  }
}

TEST_F(Segments, OfAnotherUserAreNotFound) {
  ASSERT_TRUE(Add(1, 5).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->ReadHeader(User(2), SegmentIdOf(5)).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadChunk(User(2), SegmentIdOf(5), 0).status()));
  ASSERT_TRUE(store_->Commit(Batch().DropSegment(User(2), SegmentIdOf(5))).ok());
  EXPECT_TRUE(CheckSegment(*store_, 1, 5).ok());
}

TEST_F(Segments, DroppedLeaveNoRowAndNoChunk) {
  ASSERT_TRUE(Add(1, 5).ok());
  ASSERT_TRUE(Add(1, 6).ok());
  Batch batch;
  batch.DropSegment(User(1), SegmentIdOf(5)).DropSegment(User(1), SegmentIdOf(404));
  ASSERT_TRUE(store_->Commit(batch).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->GetSegment(User(1), SegmentIdOf(5)).status()));
  const SweepResult swept = store_->SweepOrphans().value();
  EXPECT_EQ(swept.segments_seen, 1u);
  EXPECT_EQ(swept.orphans_removed, 0u);
  EXPECT_TRUE(CheckSegment(*store_, 1, 6).ok());
}

TEST_F(Segments, AnIdIsWrittenOnce) {
  ASSERT_TRUE(Add(1, 5).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Add(1, 5)));
  const auto segment = Segment(*store_, 1, 6);
  EXPECT_TRUE(absl::IsAlreadyExists(
      store_->Commit(Batch().AddSegment(User(1), segment).AddSegment(User(1), segment))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->Commit(Batch().AddSegment(User(1), segment).DropSegment(User(1), SegmentIdOf(6)))));
  EXPECT_TRUE(CheckSegment(*store_, 1, 5).ok());
  EXPECT_TRUE(Add(1, 6).ok());
}

TEST_F(Segments, ListedPageByPage) {
  std::set<kv::SegmentId> expected;
  for (uint64_t seed = 0; seed < 7; ++seed) {
    ASSERT_TRUE(Add(1, seed).ok());
    expected.insert(SegmentIdOf(seed));
  }
  ASSERT_TRUE(Add(2, 100).ok());
  std::set<kv::SegmentId> found;
  std::optional<kv::SegmentId> after;
  bool more = true;
  while (more) {
    const SegmentPage page = store_->ListSegments(User(1), after, 3).value();
    for (const SegmentRow& row : page.segments) EXPECT_TRUE(found.insert(row.id).second);
    after = page.segments.back().id;
    more = page.more;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(Segments, ChunksWithoutARowAreNotServedAndAreSwept) {
  ASSERT_TRUE(Add(1, 5).ok());
  const auto orphan = Segment(*store_, 1, 299);
  Below([&](States& states) { return states.Put(User(1), *orphan); });
  EXPECT_TRUE(absl::IsNotFound(store_->ReadHeader(User(1), SegmentIdOf(299)).status()));
  const SweepResult swept = store_->SweepOrphans().value();
  EXPECT_EQ(swept.segments_seen, 2u);
  EXPECT_EQ(swept.orphans_removed, 1u);
  EXPECT_EQ(swept.orphan_chunks_removed, 5u);
  EXPECT_EQ(store_->SweepOrphans().value().segments_seen, 1u);
  EXPECT_TRUE(CheckSegment(*store_, 1, 5).ok());
}

TEST_F(Segments, LostChunksAreReportedAsCorruptAndFound) {
  ASSERT_TRUE(Add(1, 299).ok());
  ASSERT_TRUE(Add(1, 5).ok());
  Below([&](States& states) { return states.Delete(User(1), SegmentIdOf(299), 2); });
  for (const base::Status& status : {store_->ReadHeader(User(1), SegmentIdOf(299)).status(),
                                     store_->ReadChunk(User(1), SegmentIdOf(299), 0).status(),
                                     store_->ReadSegment(User(1), SegmentIdOf(299)).status()}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(base::Reason(status), "STATE_CORRUPT");
  }
  const auto broken = store_->FindBrokenSegments(User(1)).value();
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].id, SegmentIdOf(299));
}

TEST_F(Segments, RecordsOfTheSameBatchComeWithThem) {
  Batch batch;
  batch.Put(Key(1, Kind::kMemory, 1, 0), "names segment 5");
  batch.AddSegment(User(1), Segment(*store_, 1, 5));
  batch.AddSegment(User(1), Segment(*store_, 1, 6));
  ASSERT_TRUE(store_->Commit(batch).ok());
  Reopen();
  EXPECT_EQ(store_->Get(Key(1, Kind::kMemory, 1, 0)).value(), "names segment 5");
  EXPECT_TRUE(CheckSegment(*store_, 1, 5).ok());
  EXPECT_TRUE(CheckSegment(*store_, 1, 6).ok());
  // A batch that is refused leaves nothing, not even chunks.
  Batch refused;
  refused.AddSegment(User(1), Segment(*store_, 1, 7));
  refused.AddSegment(User(1), Segment(*store_, 1, 5));
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Commit(refused)));
  EXPECT_EQ(store_->SweepOrphans().value().segments_seen, 2u);
}

TEST_F(Segments, StatsCountWhatIsStored) {
  const Stats before = store_->GetStats();
  ASSERT_TRUE(Add(1, 299).ok());
  const Stats after = store_->GetStats();
  EXPECT_EQ(after.commits, before.commits + 1);
  EXPECT_EQ(after.states_flushes, before.states_flushes + 1);
  EXPECT_GT(after.commit_sequence, before.commit_sequence);
  EXPECT_GE(after.states_file_bytes,
            before.states_file_bytes + store_->GetSegment(User(1), SegmentIdOf(299)).value().bytes);
  EXPECT_GT(after.memory_bytes, 0u);
}

}  // namespace
}  // namespace kvasir::store
