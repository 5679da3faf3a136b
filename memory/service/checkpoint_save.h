// CheckpointSave: the one commit of SaveState: parts, checkpoint rows, and for a promotable session
// its memory and index rows. Internal.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "memory/service/learning.h"
#include "memory/service/session_changes.h"

namespace kvasir::service {

// Segments sealed and ready to be stored, with the parts that will name them.
struct SealedParts {
  std::vector<std::shared_ptr<const kv::EncodedSegment>> segments;
  std::vector<StatePart> parts;
  int64_t bytes() const;
};
// Errors: NotFound (the user's key was destroyed).
base::StatusOr<SealedParts> Seal(Core& core, const store::UserKey& user,
                                 const std::vector<std::shared_ptr<const kv::KvSegment>>& parts);

class CheckpointSave {
 public:
  // REQUIRES: the user's gate held shared, and the session's lock.
  CheckpointSave(Core& core, UserState& user, SessionRecord session)
      : core_(core), user_(user), session_(std::move(session)), voiding_(*core.store, user) {}

  // Errors: as Sessions::SaveState.
  base::Status Run(int64_t turn, const SealedParts& sealed, bool replaces_last);

 private:
  // Puts the rows; fills rows_ with all of them.
  base::Status PutRows(int64_t turn, const SealedParts& sealed, bool replaces_last);
  base::Status PutMemory(int64_t turn);
  void PutJobDone(int64_t turn);
  void DropReplaced();
  void Apply(int64_t added_bytes);

  Core& core_;
  UserState& user_;
  SessionRecord session_;
  SessionVoiding voiding_;
  store::Batch batch_;
  std::vector<CheckpointRow> rows_;
  std::vector<kv::SegmentId> stored_;  // before this save
  std::vector<StatePart> replaced_;
  std::optional<MemoryRecord> memory_;
  IndexUpdate index_;
  bool job_done_ = false;
};

}  // namespace kvasir::service
