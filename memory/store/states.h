// States: the instance of segment headers and chunks, as sealed by the codec. No write-ahead log:
// what was put is durable once Flush returned. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/status.h"
#include "engine/kv/codec.h"
#include "memory/store/rocks.h"

namespace kvasir::store {

class States {
 public:
  explicit States(std::unique_ptr<Instance> instance);
  ~States();

  // Writes header and chunks. Not durable, and visible at once: the row in meta decides whether
  // they count. Errors: Unavailable.
  base::Status Put(const UserKey& user, const kv::EncodedSegment& segment);
  // Makes everything durable whose Put returned before the call. Concurrent calls share flushes.
  // Errors: Unavailable.
  base::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  // Part 0 is the header, part 1 + i chunk i. Errors: NotFound, DataLoss, Unavailable.
  base::StatusOr<std::string> Get(const UserKey& user, const kv::SegmentId& id, int part) const;
  // Removes the parts [0, parts). Errors: Unavailable.
  base::Status Delete(const UserKey& user, const kv::SegmentId& id, int parts);
  // Removes all parts of the id that exist; returns how many. Errors: DataLoss, Unavailable.
  base::StatusOr<uint64_t> DeleteAll(const UserKey& user, const kv::SegmentId& id);
  // Calls `visit` once for every (user, id) that has a part, in key order, until it fails. One seek
  // each. Errors: of `visit`, DataLoss, Unavailable.
  base::Status ForEachSegment(
      const std::function<base::Status(const UserKey&, const kv::SegmentId&)>& visit) const;
  base::Status DropUser(const UserKey& user);

  uint64_t flushes() const ABSL_LOCKS_EXCLUDED(mutex_);
  Instance& instance() const { return *instance_; }

 private:
  std::unique_ptr<Instance> instance_;
  mutable absl::Mutex mutex_;
  absl::CondVar flushed_;
  bool flushing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;    // calls of Flush so far
  uint64_t durable_ ABSL_GUARDED_BY(mutex_) = 0;  // calls up to this one are served
  uint64_t flushes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvasir::store
