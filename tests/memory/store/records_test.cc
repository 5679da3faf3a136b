// Records: what was committed is what is read, in order, within bounds, and unreadable on disk.
#include <gtest/gtest.h>

#include <set>

#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

class Records : public testing::Test {
 protected:
  Records() : store_(OpenOrDie(TestOptions(temp_.path()))) {}
  void Reopen() {
    store_.reset();
    store_ = OpenOrDie(TestOptions(temp_.path()));
  }
  void Put(const RecordKey& key, std::string value) {
    const base::Status status = store_->Commit(Batch().Put(key, std::move(value)));
    ASSERT_TRUE(status.ok()) << status;
  }
  std::vector<uint64_t> Sequences(ScanOptions options, bool* more = nullptr) {
    const auto page = store_->Scan(options);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<uint64_t> sequences;
    for (const Record& record : page->records) sequences.push_back(record.key.sequence);
    if (more != nullptr) *more = page->more;
    return sequences;
  }

  TempDir temp_;
  std::unique_ptr<Store> store_;
};

TEST_F(Records, CommittedIsReadAlsoAfterReopening) {
  const RecordKey a = Key(1, Kind::kSession, 1, 0);
  const RecordKey b = Key(1, Kind::kSession, 2, 0);
  ASSERT_TRUE(store_->Commit(Batch().Put(a, "old").Put(a, "new").Put(b, "").Delete(b)).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(store_->Get(a).value(), "new");
    EXPECT_TRUE(absl::IsNotFound(store_->Get(b).status()));
    Reopen();
  }
  Put(b, Bytes(1, 100000));
  EXPECT_EQ(store_->Get(b).value(), Bytes(1, 100000));
  ASSERT_TRUE(store_->Commit(Batch().Delete(a).Delete(b)).ok());
  EXPECT_TRUE(AllRecords(*store_, User(1)).empty());
}

TEST_F(Records, ScanWalksPagesInBothDirections) {
  for (uint64_t i = 0; i < 10; ++i) Put(Key(1, Kind::kTurn, 5, i), std::to_string(i));
  Put(Key(1, Kind::kTurn, 4, 77), "another session");
  Put(Key(1, Kind::kTurn, 6, 78), "another session");
  Put(Key(2, Kind::kTurn, 5, 79), "another user");
  Put(Key(1, Kind::kMemory, 5, 80), "another kind");
  ScanOptions scan = {.user = User(1),
                      .kind = Kind::kTurn,
                      .id = Key(1, Kind::kTurn, 5, 0).id,
                      .after = {},
                      .records_max = 4};
  bool more = false;
  EXPECT_EQ(Sequences(scan, &more), (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(more);
  scan.after = Key(1, Kind::kTurn, 5, 5);
  EXPECT_EQ(Sequences(scan, &more), (std::vector<uint64_t>{6, 7, 8, 9}));
  EXPECT_FALSE(more);
  scan.order = ScanOptions::Order::kDescending;
  EXPECT_EQ(Sequences(scan, &more), (std::vector<uint64_t>{4, 3, 2, 1}));
  EXPECT_TRUE(more);
  scan.after.reset();
  EXPECT_EQ(Sequences(scan, &more), (std::vector<uint64_t>{9, 8, 7, 6}));
  scan.id.reset();
  EXPECT_EQ(Sequences(scan, &more), (std::vector<uint64_t>{78, 9, 8, 7}));
}

TEST_F(Records, ScanRefusesAPlaceOutsideItsRange) {
  ScanOptions scan = {.user = User(1), .kind = Kind::kTurn, .id = {}, .after = {}};
  for (const RecordKey& after : {Key(2, Kind::kTurn, 5, 0), Key(1, Kind::kMemory, 5, 0)}) {
    scan.after = after;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Scan(scan).status()));
  }
}

TEST_F(Records, ScanAllUsersFindsExactlyTheKind) {
  std::set<RecordKey> expected;
  for (int user = 0; user < 9; ++user) {
    for (const Kind kind : {Kind::kUser, Kind::kJob, Kind::kOperation}) {
      if (kind == Kind::kJob && user % 3 == 0) continue;
      const RecordKey key = Key(user, kind, static_cast<uint8_t>(user), 0);
      Put(key, "x");
      if (kind == Kind::kJob) expected.insert(key);
    }
  }
  for (const size_t records_max : {1, 2, 100}) {
    std::set<RecordKey> found;
    std::optional<RecordKey> after;
    bool more = true;
    while (more) {
      const auto page = store_->ScanAllUsers(Kind::kJob, after, records_max);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const Record& record : page->records) EXPECT_TRUE(found.insert(record.key).second);
      ASSERT_FALSE(page->records.empty());
      after = page->records.back().key;
      more = page->more;
    }
    EXPECT_EQ(found, expected) << records_max;
  }
}

TEST_F(Records, CountRecordsCountsOneKindOfOneUserOrOfAll) {
  for (int user = 0; user < 5; ++user) {
    Put(Key(user, Kind::kUser, 0, 0), "x");
    for (uint8_t i = 0; i < user; ++i) Put(Key(user, Kind::kMemory, i, 0), "x");
    Put(Key(user, Kind::kJob, 0, 0), "x");
  }
  const auto count = [&](Kind kind, const std::optional<UserKey>& user) {
    return store_->CountRecords(kind, user).value_or(-1);
  };
  EXPECT_EQ(count(Kind::kUser, std::nullopt), 5);
  EXPECT_EQ(count(Kind::kMemory, std::nullopt), 1 + 2 + 3 + 4);
  EXPECT_EQ(count(Kind::kSession, std::nullopt), 0);
  EXPECT_EQ(count(Kind::kMemory, Key(3, Kind::kUser, 0, 0).user), 3);
  EXPECT_EQ(count(Kind::kMemory, Key(0, Kind::kUser, 0, 0).user), 0);
  EXPECT_EQ(count(Kind::kJob, Key(4, Kind::kUser, 0, 0).user), 1);
}

TEST_F(Records, EveryBoundIsEnforcedAndNamedAndNothingChanges) {
  Options options = TestOptions(temp_.path());
  options.value_bytes_max = 100;
  options.batch_bytes_max = 400;
  options.batch_changes_max = 5;
  options.segment_bytes_max = 1000;
  store_.reset();
  store_ = OpenOrDie(options);
  Batch many;
  for (uint8_t i = 0; i < 6; ++i) many.Put(Key(1, Kind::kTurn, i, 0), "x");
  Batch large;
  for (uint8_t i = 0; i < 4; ++i) large.Put(Key(1, Kind::kTurn, i, 0), std::string(100, 'x'));
  const std::vector<std::pair<Batch, std::string>> cases = {
      {Batch().Put(Key(1, Kind::kTurn, 1, 0), std::string(101, 'x')),
       "value of 101 bytes, the store accepts at most 100"},
      {many, "batch of 6 changes, the store accepts at most 5"},
      {large, "batch of 564 bytes, the store accepts at most 400"},
      {Batch().AddSegment(User(1), Segment(*store_, 1, 299)), "the store accepts at most 1000"},
      {Batch().Put(Key(1, Kind::kSegment, 1, 0), "x"), "records of kind 11"},
      {Batch().Delete(Key(1, Kind::kSegment, 1, 0)), "records of kind 11"},
      {Batch().Put(Key(1, Kind{0}, 1, 0), "x"), "record of kind 0"},
      {Batch().Put(Key(1, Kind{200}, 1, 0), "x"), "record of kind 200"},
      {Batch().AddSegment(User(1), nullptr), "null"},
  };
  for (const auto& [batch, message] : cases) {
    const base::Status status = store_->Commit(batch);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message << ": " << status;
    EXPECT_NE(status.message().find(message), std::string::npos) << message << ": " << status;
  }
  EXPECT_TRUE(AllRecords(*store_, User(1)).empty());
}

TEST_F(Records, PagesAreBoundedByBytes) {
  Options options = TestOptions(temp_.path());
  options.scan_bytes_max = 5000;
  store_.reset();
  store_ = OpenOrDie(options);
  for (uint64_t i = 0; i < 4; ++i) Put(Key(1, Kind::kTurn, 5, i), Bytes(i, i == 1 ? 9000 : 2000));
  ScanOptions scan = {.user = User(1), .kind = Kind::kTurn, .id = {}, .after = {}};
  EXPECT_EQ(Sequences(scan), (std::vector<uint64_t>{0}));
  scan.after = Key(1, Kind::kTurn, 5, 0);
  EXPECT_EQ(Sequences(scan), (std::vector<uint64_t>{1}));
  scan.after = Key(1, Kind::kTurn, 5, 1);
  EXPECT_EQ(Sequences(scan), (std::vector<uint64_t>{2, 3}));
}

TEST_F(Records, NoFileShowsNamesValuesOrClientIds) {
  const std::string marker = "MARKER7261";
  const KeyRing& keys = store_->key_ring();
  const UserKey user = MakeUserKey(keys.index_key(), "tenant " + marker, "user " + marker);
  const RecordId name = MakeNameId(keys.index_key(), user, Kind::kSession, marker);
  for (uint64_t i = 0; i < 200; ++i) {
    Batch batch;
    batch.Put({user, Kind::kName, name, i}, marker);
    batch.Put({user, Kind::kTurn, name, i}, std::string(5000, 'x') + marker);
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  EXPECT_TRUE(FilesWith(temp_.path(), marker).empty());
  store_.reset();
  for (const std::string& file : FilesWith(temp_.path(), marker)) ADD_FAILURE() << file;
  // The scan itself can find something.
  EXPECT_FALSE(FilesWith(temp_.path(), "kvasir-store").empty());
}

TEST_F(Records, UsersWithEqualIdsAreKeptApart) {
  Put(Key(1, Kind::kMemory, 1, 0), "one");
  Put(Key(2, Kind::kMemory, 1, 0), "two");
  EXPECT_EQ(store_->Get(Key(1, Kind::kMemory, 1, 0)).value(), "one");
  EXPECT_EQ(store_->Get(Key(2, Kind::kMemory, 1, 0)).value(), "two");
}

}  // namespace
}  // namespace kvasir::store
