// I1 and I2 when the disk fails: power lost at the k-th call that changes the disk, with everything
// unsynced gone; and the k-th call failing once. Method: one sequence of batches, k = 1, 2, 3, …
// until the sequence ends before call k; the store is then opened on a good disk and compared with
// what was acknowledged.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "memory/store/rocks.h"
#include "tests/memory/store/faulty_disk.h"
#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBatches = 6;
constexpr uint64_t kLifetime = 4;  // batch n drops the segment of batch n − kLifetime

bool HasSegment(uint64_t n) { return n % 2 == 0; }
RecordKey First(uint64_t n) { return Key(1, Kind::kTurn, 1, n); }
RecordKey Second(uint64_t n) { return Key(1, Kind::kMemory, 1, n); }

base::Status CommitBatch(Store& store, uint64_t n) {
  Batch batch;
  batch.Put(First(n), Bytes(n, 700)).Put(Second(n), Bytes(n + 100, 40));
  if (HasSegment(n)) batch.AddSegment(User(1), Segment(store, 1, n));
  if (n >= kLifetime && HasSegment(n)) batch.DropSegment(User(1), SegmentIdOf(n - kLifetime));
  return store.Commit(batch);
}

// The numbers of the batches that were acknowledged. Every refusal must be Unavailable.
std::set<uint64_t> CommitAll(Store& store) {
  std::set<uint64_t> acknowledged;
  for (uint64_t n = 0; n < kBatches; ++n) {
    const base::Status status = CommitBatch(store, n);
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << n << ": " << status;
    if (status.ok()) acknowledged.insert(n);
    // The batch may be in the log all the same: its chunks must not be swept.
    if (!status.ok()) store.SweepOrphans().status().IgnoreError();
  }
  return acknowledged;
}

void CheckBatches(Store& store, const std::set<uint64_t>& acknowledged) {
  std::set<uint64_t> present;
  for (uint64_t n = 0; n < kBatches; ++n) {
    const auto first = store.Get(First(n));
    const auto second = store.Get(Second(n));
    EXPECT_EQ(first.ok(), second.ok()) << "batch " << n << " is half there";
    if (first.ok()) {
      EXPECT_EQ(*first, Bytes(n, 700));
      present.insert(n);
    } else {
      EXPECT_TRUE(absl::IsNotFound(first.status())) << first.status();
      EXPECT_FALSE(acknowledged.contains(n)) << "batch " << n << " was acknowledged and is lost";
    }
  }
  for (uint64_t n = 0; n < kBatches; n += 2) {
    const base::Status status = CheckSegment(store, 1, n);
    const bool expected = present.contains(n) && !present.contains(n + kLifetime);
    EXPECT_TRUE(expected ? status.ok() : absl::IsNotFound(status))
        << "segment " << n << ": " << status;
  }
}

class DiskTest : public testing::Test {
 protected:
  // A store made on a good disk, to be copied for every k.
  DiskTest() { OpenOrDie(TestOptions(Made())); }
  std::string Made() const { return temp_.path() + "/made"; }
  std::string Data() const { return temp_.path() + "/data"; }

  // Runs the batches on a disk with a fault at call `k`; false when they needed fewer calls.
  bool RunWithFault(uint64_t k, FaultyDisk::Fault fault) {
    fs::remove_all(Data());
    fs::copy(Made(), Data(), fs::copy_options::recursive);
    const auto disk = std::make_shared<FaultyDisk>();
    const std::unique_ptr<rocksdb::Env> env = MakeEnv(disk);
    disk->FailAt(k, fault);
    std::set<uint64_t> acknowledged;
    {
      auto store = OpenStoreWithEnv(TestOptions(Data()), env.get());
      if (store.ok()) {
        acknowledged = CommitAll(**store);
        EXPECT_TRUE(disk->fired() || acknowledged.size() == kBatches);
      }
    }
    if (fault == FaultyDisk::Fault::kPowerOff) disk->LoseUnsynced();
    auto store = OpenStoreWithEnv(TestOptions(Data()), CheckEnv());
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return false;
    CheckBatches(**store, acknowledged);
    const auto swept = (*store)->SweepOrphans();
    EXPECT_TRUE(swept.ok()) << swept.status();
    CheckBatches(**store, acknowledged);
    return disk->fired();
  }

  // A disk without faults whose syncs cost nothing.
  rocksdb::Env* CheckEnv() { return good_env_.get(); }

  TempDir temp_;
  std::shared_ptr<FaultyDisk> good_disk_ = std::make_shared<FaultyDisk>();
  std::unique_ptr<rocksdb::Env> good_env_ = MakeEnv(good_disk_);
};

TEST_F(DiskTest, PowerLostAtAnyCallLosesNothingAcknowledgedAndNothingIsHalf) {
  uint64_t k = 1;
  while (RunWithFault(k, FaultyDisk::Fault::kPowerOff) && !HasFailure()) ++k;
  EXPECT_FALSE(HasFailure()) << "call " << k;
  RecordProperty("calls", static_cast<int>(k));
  EXPECT_GT(k, kBatches * 4);
}

TEST_F(DiskTest, AnyCallThatFailsOnceLosesNothingAcknowledgedAndNothingIsHalf) {
  uint64_t k = 1;
  while (RunWithFault(k, FaultyDisk::Fault::kOnce) && !HasFailure()) ++k;
  EXPECT_FALSE(HasFailure()) << "call " << k;
  RecordProperty("calls", static_cast<int>(k));
  EXPECT_GT(k, kBatches * 4);
}

}  // namespace
}  // namespace kvasir::store
