// Deletion: takes memories and sessions of one user away, for every reader, durably. Internal.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/record_access.h"
#include "memory/service/session_changes.h"

namespace kvasir::service {

// Plan with the Remove methods, then Run once. REQUIRES: the user's gate held exclusively
// throughout.
class Deletion {
 public:
  Deletion(Core& core, UserState& user) : core_(core), user_(user), voiding_(*core.store, user) {}

  void RemoveMemory(const MemoryRecord& memory) { memories_[memory.id] = memory; }
  // With its turns, its checkpoint and its memory.
  void RemoveSession(const store::RecordId& session);

  // Raises the fence (RAM), tells the listener, then commits: the first batch makes everything that
  // was asked for unreadable, later ones void the states of sessions that had it mounted (a load of
  // the user finishes them after a crash). Errors: DataLoss, Unavailable (whole or absent; the user
  // is loaded anew).
  base::Status Run();

 private:
  void RaiseFence();
  void TellListener() const;
  base::Status PutMemoryRemoval(const MemoryRecord& memory);
  base::Status PutSessionRemoval(const store::RecordId& session);
  base::Status PutSourceTurns(const MemoryRecord& memory);
  base::Status PutVoidedSession(const store::RecordId& session);
  base::Status PutRowsRemoval(store::Kind kind, const store::RecordId& id);
  base::Status Commit();
  base::Status CommitAll();

  Core& core_;
  UserState& user_;
  std::map<store::RecordId, MemoryRecord> memories_;
  std::map<store::RecordId, std::string> sessions_;  // id → name
  std::map<store::RecordId, std::string> voided_;    // sessions that stay, without their state
  std::set<store::RecordId> jobs_;
  SessionVoiding voiding_;
  store::Batch batch_;
};

}  // namespace kvasir::service
