// UserCheck: finds, and mends, contradictions between the records of one user. Internal.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/record_access.h"

namespace kvasir::service {

class UserCheck {
 public:
  // REQUIRES: the user's gate held exclusively.
  UserCheck(Core& core, UserState& user, Repair repair, ConsistencyReport* report)
      : core_(core), user_(user), repair_(repair), report_(*report) {}

  // Errors: DataLoss, Unavailable.
  base::Status Run();

 private:
  struct Turns {
    std::set<int64_t> numbers;
    std::vector<TurnRecord> running;
  };

  base::Status ReadAll();
  base::Status ReadTurnRows();
  void CountRecords();
  void CheckTurns();
  void CheckGaps(SessionRecord& session, const std::set<int64_t>& numbers);
  void CheckMemories();
  void CheckCheckpoints();
  void CheckSegments();
  base::Status CheckIndex();
  base::Status CheckMemoryIndex(const MemoryRecord& memory);
  void CheckJobs();
  bool IsWhole(const StatePart& part) const;
  void QueueBuild(const store::RecordId& session);
  // Notes a finding; true when it is to be mended.
  bool Found(const char* kind, std::string detail);

  Core& core_;
  UserState& user_;
  const Repair repair_;
  ConsistencyReport& report_;
  std::map<store::RecordId, SessionRecord> sessions_;
  std::map<store::RecordId, MemoryRecord> memories_;
  std::map<store::RecordId, Turns> turns_;
  std::map<store::RecordId, std::vector<CheckpointRow>> checkpoints_;
  std::map<store::RecordId, std::set<int64_t>> postings_;
  std::map<store::RecordId, JobRecord> jobs_;
  std::map<kv::SegmentId, store::SegmentRow> segments_;
  std::set<kv::SegmentId> broken_;
  std::set<store::RecordId> changed_sessions_;
  store::Batch batch_;
};

}  // namespace kvasir::service
