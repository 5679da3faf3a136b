#include "tests/memory/store/crash_load.h"

#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/check.h"
#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

constexpr uint8_t kRecordsOfBatch = 3;

uint64_t Seed(int thread, uint64_t n) { return uint64_t(thread) * 1000000 + n; }
size_t SizeOf(int thread, uint64_t n, uint8_t record) {
  return (Seed(thread, n) * 7919 + record * 104729) % 6000;
}
bool HasSegment(uint64_t n) { return n % 3 == 0; }
// Segments live for six batches.
bool DropsSegment(uint64_t n) { return n >= 6 && HasSegment(n - 6); }

std::string ValueOf(int thread, uint64_t n, uint8_t record) {
  return Bytes(Seed(thread, n) * 8 + record, SizeOf(thread, n, record));
}

Batch BatchOf(const Store& store, int thread, uint64_t n) {
  Batch batch;
  for (uint8_t record = 0; record < kRecordsOfBatch; ++record) {
    batch.Put(Key(thread, Kind::kTurn, record, n), ValueOf(thread, n, record));
  }
  if (HasSegment(n)) batch.AddSegment(User(thread), Segment(store, thread, Seed(thread, n)));
  if (DropsSegment(n)) batch.DropSegment(User(thread), SegmentIdOf(Seed(thread, n - 6)));
  return batch;
}

// Number of batches of `thread` in the store, or why they are not a whole prefix.
base::StatusOr<uint64_t> CountBatches(const Store& store, int thread) {
  uint64_t count = 0;
  const auto records = AllRecords(store, User(thread));
  while (records.contains(Key(thread, Kind::kTurn, 0, count))) ++count;
  for (uint64_t n = 0; n < count; ++n) {
    for (uint8_t record = 0; record < kRecordsOfBatch; ++record) {
      const auto found = records.find(Key(thread, Kind::kTurn, record, n));
      if (found == records.end() || found->second != ValueOf(thread, n, record)) {
        return base::Internal("thread {} batch {}: record {} is {}", thread, n, record,
                              found == records.end() ? "absent" : "other");
      }
    }
  }
  if (records.size() != count * kRecordsOfBatch) {
    return base::Internal("thread {}: {} records for {} batches", thread, records.size(), count);
  }
  return count;
}

base::Status CheckSegments(const Store& store, int thread, uint64_t count) {
  for (uint64_t n = 0; n < count; ++n) {
    if (!HasSegment(n)) continue;
    const base::Status status = CheckSegment(store, thread, Seed(thread, n));
    const bool dropped = n + 6 < count;
    if (dropped ? !absl::IsNotFound(status) : !status.ok()) {
      return base::Internal("thread {} segment {} of {} batches: {}", thread, n, count,
                            status.ToString());
    }
  }
  const uint64_t live = store.ListSegments(User(thread), {}, 100).value().segments.size();
  const uint64_t expected = (count + 2) / 3 - (count > 6 ? (count - 6 + 2) / 3 : 0);
  if (live == expected) return base::OkStatus();
  return base::Internal("thread {}: {} segments after {} batches, {} expected", thread, live, count,
                        expected);
}

base::Status CheckThread(const Store& store, int thread, uint64_t acknowledged) {
  KVASIR_ASSIGN_OR_RETURN(const uint64_t count, CountBatches(store, thread));
  // At most one more may have been durable before its acknowledgement was read.
  if (count < acknowledged || count > acknowledged + 1) {
    return base::Internal("thread {}: {} batches are here, {} were acknowledged", thread, count,
                          acknowledged);
  }
  return CheckSegments(store, thread, count);
}

}  // namespace

void RunLoad(const std::string& dir, int fd) {
  const std::unique_ptr<Store> store = OpenOrDie(TestOptions(dir));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kLoadThreads; ++thread) {
    threads.emplace_back([&store, thread, fd] {
      for (uint64_t n = CountBatches(*store, thread).value();; ++n) {
        const base::Status status = store->Commit(BatchOf(*store, thread, n));
        KVASIR_CHECK(status.ok());
        const std::string line = fmt::format("{} {}\n", thread, n);
        KVASIR_CHECK(::write(fd, line.data(), line.size()) == ssize_t(line.size()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::abort();
}

std::string CheckLoad(const std::string& dir, const Acknowledged& acknowledged) {
  auto store = Store::Open(TestOptions(dir));
  if (!store.ok()) return store.status().ToString();
  for (int pass = 0; pass < 2; ++pass) {
    for (int thread = 0; thread < kLoadThreads; ++thread) {
      const auto known = acknowledged.find(thread);
      const uint64_t count = known == acknowledged.end() ? 0 : known->second;
      const base::Status status = CheckThread(**store, thread, count);
      if (!status.ok()) return status.ToString();
    }
    const auto swept = (*store)->SweepOrphans();
    if (!swept.ok()) return swept.status().ToString();
    if (pass == 1 && swept->orphans_removed > 0) return "orphans are left after a sweep";
  }
  return "";
}

Acknowledged LoadedBatches(const std::string& dir) {
  const std::unique_ptr<Store> store = OpenOrDie(TestOptions(dir));
  Acknowledged batches;
  for (int thread = 0; thread < kLoadThreads; ++thread) {
    batches[thread] = CountBatches(*store, thread).value();
  }
  return batches;
}

}  // namespace kvasir::store
