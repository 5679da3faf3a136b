// DropUser: nothing of the user is left in any reader or file, everything of the others stays.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

class DropUser : public testing::Test {
 protected:
  // Three users, interleaved, so that all share write buffers, logs and level-0 files.
  DropUser() : store_(OpenOrDie(TestOptions(temp_.path()))) {
    for (uint64_t i = 0; i < 40; ++i) {
      for (int user = 1; user <= 3; ++user) {
        Batch batch;
        batch.Put(Key(user, Kind::kTurn, 1, i), Bytes(i, 3000));
        batch.Put(Key(user, Kind::kMemory, uint8_t(i), 0), Bytes(i + 1000, 300));
        if (i % 8 == 0) {
          batch.AddSegment(User(user), Segment(*store_, user, i * 4 + uint64_t(user)));
        }
        const base::Status status = store_->Commit(batch);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }
  void ExpectWhole(int user) {
    EXPECT_EQ(AllRecords(*store_, User(user)).size(), 80u);
    for (uint64_t i = 0; i < 40; i += 8) {
      const base::Status status = CheckSegment(*store_, user, i * 4 + uint64_t(user));
      EXPECT_TRUE(status.ok()) << user << ": " << status;
    }
  }
  void ExpectGone(int user) {
    EXPECT_TRUE(AllRecords(*store_, User(user)).empty());
    EXPECT_TRUE(store_->ListSegments(User(user), {}, 10).value().segments.empty());
    for (uint64_t i = 0; i < 40; i += 8) {
      EXPECT_TRUE(absl::IsNotFound(
          store_->ReadHeader(User(user), SegmentIdOf(i * 4 + uint64_t(user))).status()));
    }
  }

  TempDir temp_;
  std::unique_ptr<Store> store_;
};

TEST_F(DropUser, RemovesEverythingOfTheUserAndNothingOfOthers) {
  const auto first = AllRecords(*store_, User(1));
  const auto third = AllRecords(*store_, User(3));
  const base::Status status = store_->DropUser(User(2));
  ASSERT_TRUE(status.ok()) << status;
  for (int i = 0; i < 2; ++i) {
    ExpectGone(2);
    ExpectWhole(1);
    ExpectWhole(3);
    EXPECT_EQ(AllRecords(*store_, User(1)), first);
    EXPECT_EQ(AllRecords(*store_, User(3)), third);
    store_.reset();
    store_ = OpenOrDie(TestOptions(temp_.path()));
  }
  const SweepResult swept = store_->SweepOrphans().value();
  EXPECT_EQ(swept.segments_seen, 10u);
  EXPECT_EQ(swept.orphans_removed, 0u);
}

TEST_F(DropUser, LeavesNoRecordInAnyTableOrLog) {
  // Every record's key begins with the user's key, in clear. MANIFEST may keep bounds of old files.
  const UserKey user = User(2);
  const std::string prefix(user.bytes.begin(), user.bytes.end());
  ASSERT_FALSE(FilesWith(temp_.path(), prefix).empty());
  ASSERT_TRUE(store_->DropUser(user).ok());
  for (const std::string& file : FilesWith(temp_.path(), prefix)) {
    EXPECT_NE(file.find("MANIFEST"), std::string::npos) << file;
  }
}

TEST_F(DropUser, CanBeRepeatedAndTheUserCanComeBack) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store_->DropUser(User(2)).ok());
  ASSERT_TRUE(store_->DropUser(User(99)).ok());
  ASSERT_TRUE(store_
                  ->Commit(Batch()
                               .Put(Key(2, Kind::kUser, 1, 0), "back")
                               .AddSegment(User(2), Segment(*store_, 2, 500)))
                  .ok());
  store_.reset();
  store_ = OpenOrDie(TestOptions(temp_.path()));
  EXPECT_EQ(AllRecords(*store_, User(2)).size(), 1u);
  EXPECT_TRUE(CheckSegment(*store_, 2, 500).ok());
}

}  // namespace
}  // namespace kvasir::store
