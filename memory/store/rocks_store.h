// RocksStore: Store over two RocksDB instances. Internal.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "memory/store/directory.h"
#include "memory/store/meta.h"
#include "memory/store/states.h"
#include "memory/store/store.h"

namespace kvasir::store {

class RocksStore final : public Store {
 public:
  RocksStore(const Options& options, std::unique_ptr<DataDirectory> directory,
             std::unique_ptr<Instance> meta, std::unique_ptr<Instance> states);

  const KeyRing& key_ring() const override { return directory_->key_ring(); }
  base::Status Commit(const Batch& batch) override;
  base::StatusOr<std::string> Get(const RecordKey& key) const override;
  base::StatusOr<Page> Scan(const ScanOptions& options) const override;
  base::StatusOr<int64_t> CountRecords(Kind kind,
                                       const std::optional<UserKey>& user) const override;
  base::StatusOr<Page> ScanAllUsers(Kind kind, const std::optional<RecordKey>& after,
                                    size_t records_max) const override;
  base::StatusOr<SegmentRow> GetSegment(const UserKey& user,
                                        const kv::SegmentId& id) const override;
  base::StatusOr<SegmentPage> ListSegments(const UserKey& user,
                                           const std::optional<kv::SegmentId>& after,
                                           size_t segments_max) const override;
  base::StatusOr<std::string> ReadHeader(const UserKey& user,
                                         const kv::SegmentId& id) const override;
  base::StatusOr<std::string> ReadChunk(const UserKey& user, const kv::SegmentId& id,
                                        int chunk) const override;
  base::StatusOr<kv::EncodedSegment> ReadSegment(const UserKey& user,
                                                 const kv::SegmentId& id) const override;
  base::Status DropUser(const UserKey& user) override;
  base::StatusOr<SweepResult> SweepOrphans() override;
  base::StatusOr<std::vector<SegmentRow>> FindBrokenSegments(const UserKey& user) const override;
  Stats GetStats() const override;

 private:
  struct Changes;  // a batch, sorted by what must happen when
  class InFlight;  // keeps the sweep from the segments of a commit
  enum class Flight {
    kActive,  // a commit with it is running
    kDoubt,   // its batch failed: the row is absent now and may be there after reopening
  };

  base::StatusOr<Changes> Plan(const Batch& batch) const;
  base::Status CheckPut(const Batch::PutRecord& put) const;
  base::Status CheckSegment(const Batch::AddedSegment& added) const;
  // Part 0 is the header. `row` was read before the part.
  base::StatusOr<std::string> ReadPart(const SegmentRow& row, int part) const;
  // Removes the chunks of (user, id) unless a row or a commit in flight names them.
  base::Status SweepOne(const UserKey& user, const kv::SegmentId& id, SweepResult& result)
      ABSL_LOCKS_EXCLUDED(in_flight_mutex_);

  const Options options_;
  std::unique_ptr<DataDirectory> directory_;
  Meta meta_;
  States states_;
  std::atomic<uint64_t> commits_ = 0;
  absl::Mutex in_flight_mutex_;
  // Segments the sweep must leave alone.
  std::map<std::pair<UserKey, kv::SegmentId>, Flight> in_flight_ ABSL_GUARDED_BY(in_flight_mutex_);
};

// The sealed content of a kSegment row.
std::string EncodeRow(const SegmentRow& row);
// Errors: DataLoss.
base::StatusOr<SegmentRow> DecodeRow(const RecordKey& key, std::string_view value);

}  // namespace kvasir::store
