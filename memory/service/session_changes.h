// Changes to sessions that several operations share. Internal.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "memory/service/record_access.h"
#include "memory/service/user_state.h"
#include "memory/store/batch.h"

namespace kvasir::service {

// Makes a running turn kFailed: its user's text stays, a reply does not.
void FailTurn(std::string_view finish_reason, int64_t now_us, TurnRecord& turn);
// What stays of a turn whose content is removed: session, number, times.
TurnRecord WithoutContent(const TurnRecord& turn);

// Voids states of sessions in one batch and knows which segments that frees.
class SessionVoiding {
 public:
  SessionVoiding(const store::Store& store, const UserState& user) : store_(store), user_(user) {}

  // Drops the checkpoint and makes the state of all turns so far void: the session goes on from
  // text. Puts the changed `session` into the batch too. Errors: DataLoss, Unavailable.
  base::Status Void(SessionRecord& session, store::Batch& batch);
  // Void, and marks mounts of `memories` deleted; a running turn fails.
  base::Status ForgetMounts(const std::set<store::RecordId>& memories, SessionRecord& session,
                            int64_t now_us, store::Batch& batch);
  // ForgetMounts of every memory that is not live.
  base::Status ForgetLostMounts(SessionRecord& session, int64_t now_us, store::Batch& batch);
  // Ends the running turn of the session, if there is one, as failed.
  base::Status FailRunning(SessionRecord& session, std::string_view finish_reason, int64_t now_us,
                           store::Batch& batch);
  // Removes the checkpoint's rows, and its segments but those in `kept`.
  base::Status DropCheckpoint(const store::RecordId& session, const std::vector<StatePart>& kept,
                              store::Batch& batch);

  // Bytes of the segments that the batches drop.
  int64_t freed_bytes() const { return freed_bytes_; }
  void Drop(const StatePart& part, store::Batch& batch);

 private:
  const store::Store& store_;
  const UserState& user_;
  std::set<kv::SegmentId> dropped_;
  int64_t freed_bytes_ = 0;
};

inline bool Contains(const std::vector<StatePart>& parts, const kv::SegmentId& id) {
  for (const StatePart& part : parts) {
    if (part.id == id) return true;
  }
  return false;
}

}  // namespace kvasir::service
