#include "memory/service/user_check.h"

#include "memory/service/learning.h"
#include "memory/service/session_changes.h"

namespace kvasir::service {
namespace {

// Fills `out` with all records of one kind by id.
template <typename T>
base::Status ReadRecords(const store::Store& store, const store::UserKey& user, store::Kind kind,
                         std::map<store::RecordId, T>& out) {
  return ForEachRecord(store, user, kind, std::nullopt, [&](const store::Record& record) {
    KVASIR_ASSIGN_OR_RETURN(out[record.key.id], Decode<T>(record.value));
    return base::OkStatus();
  });
}

std::string Place(const char* what, const store::RecordId& id, int64_t number) {
  return fmt::format("{} {}, {}", what, id.Hex(), number);
}

}  // namespace

bool UserCheck::Found(const char* kind, std::string detail) {
  const bool mend = repair_ == Repair::kYes;
  report_.findings.push_back({.kind = kind, .detail = std::move(detail), .mended = mend});
  return mend;
}

base::Status UserCheck::ReadTurnRows() {
  return ForEachRecord(*core_.store, user_.key, store::Kind::kTurn, std::nullopt,
                       [&](const store::Record& record) {
                         Turns& turns = turns_[record.key.id];
                         turns.numbers.insert(static_cast<int64_t>(record.key.sequence));
                         KVASIR_ASSIGN_OR_RETURN(TurnRecord turn, Decode<TurnRecord>(record.value));
                         if (turn.state == TurnRecord::State::kRunning) {
                           turns.running.push_back(std::move(turn));
                         }
                         return base::OkStatus();
                       });
}

base::Status UserCheck::ReadAll() {
  const store::Store& store = *core_.store;
  KVASIR_RETURN_IF_ERROR(ReadRecords(store, user_.key, store::Kind::kSession, sessions_));
  KVASIR_RETURN_IF_ERROR(ReadRecords(store, user_.key, store::Kind::kMemory, memories_));
  KVASIR_RETURN_IF_ERROR(ReadRecords(store, user_.key, store::Kind::kJob, jobs_));
  KVASIR_RETURN_IF_ERROR(ReadTurnRows());
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      store, user_.key, store::Kind::kCheckpoint, std::nullopt, [&](const store::Record& record) {
        KVASIR_ASSIGN_OR_RETURN(checkpoints_[record.key.id].emplace_back(),
                                Decode<CheckpointRow>(record.value));
        return base::OkStatus();
      }));
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      store, user_.key, store::Kind::kPostings, std::nullopt, [&](const store::Record& record) {
        postings_[record.key.id].insert(static_cast<int64_t>(record.key.sequence));
        return base::OkStatus();
      }));
  KVASIR_RETURN_IF_ERROR(ForEachSegment(
      store, user_.key, [&](const store::SegmentRow& row) { segments_[row.id] = row; }));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<store::SegmentRow> broken,
                          store.FindBrokenSegments(user_.key));
  for (const store::SegmentRow& row : broken) broken_.insert(row.id);
  CountRecords();
  return base::OkStatus();
}

void UserCheck::CountRecords() {
  const auto count = [&](const auto& records) { report_.records += std::ssize(records); };
  ++report_.records;  // the user's own
  count(sessions_);
  count(memories_);
  count(jobs_);
  count(segments_);
  for (const auto& [id, turns] : turns_) count(turns.numbers);
  for (const auto& [id, rows] : checkpoints_) count(rows);
  for (const auto& [id, rows] : postings_) count(rows);
}

void UserCheck::CheckGaps(SessionRecord& session, const std::set<int64_t>& numbers) {
  if (!numbers.empty() && *numbers.rbegin() >= session.next_turn) {
    if (Found("TURN_GAP", Place("next turn of session", session.id, session.next_turn))) {
      session.next_turn = *numbers.rbegin() + 1;
      changed_sessions_.insert(session.id);
    }
  }
  for (int64_t number = 1; number < session.next_turn; ++number) {
    if (numbers.contains(number)) continue;
    if (!Found("TURN_GAP", Place("session and turn", session.id, number))) continue;
    TurnRecord missing;
    missing.session = session.id;
    missing.number = number;
    missing.state = TurnRecord::State::kDeleted;
    batch_.Put(TurnKey(user_.key, session.id, number), Encode(missing));
  }
}

void UserCheck::CheckTurns() {
  for (auto& [id, session] : sessions_) CheckGaps(session, turns_[id].numbers);
  for (auto& [id, turns] : turns_) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) {
      if (!Found("TURN_WITHOUT_SESSION",
                 Place("session and turns", id, std::ssize(turns.numbers)))) {
        continue;
      }
      for (const int64_t number : turns.numbers) batch_.Delete(TurnKey(user_.key, id, number));
      continue;
    }
    for (TurnRecord& turn : turns.running) {
      {
        absl::MutexLock lock(&user_.mutex);
        const auto live = user_.running.find(id);
        if (live != user_.running.end() && live->second == turn.number) continue;
      }
      if (!Found("STALE_RUNNING", Place("session and turn", id, turn.number))) continue;
      FailTurn("SERVER_STOPPED", core_.now_us(), turn);
      batch_.Put(TurnKey(user_.key, id, turn.number), Encode(turn));
      if (session->second.running_turn == turn.number) session->second.running_turn = 0;
      changed_sessions_.insert(id);
    }
  }
}

bool UserCheck::IsWhole(const StatePart& part) const {
  const auto row = segments_.find(part.id);
  return row != segments_.end() && row->second.digest == part.digest && !broken_.contains(part.id);
}

void UserCheck::QueueBuild(const store::RecordId& session) {
  const JobRecord job{.id = session,
                      .type = JobRecord::Type::kBuildMemory,
                      .user = user_.ref,
                      .due_us = core_.now_us(),
                      .create_us = core_.now_us()};
  jobs_[session] = job;
  batch_.Put(JobKey(user_.key, session), Encode(job));
  core_.jobs.Set(user_.key, job);
}

void UserCheck::CheckMemories() {
  for (auto it = memories_.begin(); it != memories_.end();) {
    auto& [id, memory] = *it++;
    if (!sessions_.contains(memory.session)) {
      if (Found("MEMORY_WITHOUT_SESSION", "memory " + id.Hex())) {
        batch_.Delete(MemoryKey(user_.key, id));
      }
      memories_.erase(std::prev(it));  // what it leaves is found below
      continue;
    }
    if (memory.state == MemoryRecord::State::kCorrupt) continue;  // known
    for (const StatePart& part : memory.parts) {
      if (IsWhole(part)) continue;
      if (!Found("MISSING_PART", Place("memory and position", id, part.first_position))) break;
      memory.state = MemoryRecord::State::kCorrupt;
      batch_.Put(MemoryKey(user_.key, id), Encode(memory));
      QueueBuild(memory.session);
      break;
    }
  }
}

void UserCheck::CheckCheckpoints() {
  for (auto& [id, rows] : checkpoints_) {
    size_t whole = 0;
    bool mend = false;
    if (!sessions_.contains(id)) {
      mend = Found("CHECKPOINT_WITHOUT_SESSION", "session " + id.Hex());
    } else {
      while (whole < rows.size() && IsWhole(rows[whole].part)) ++whole;
      if (whole == rows.size()) continue;
      mend = Found("MISSING_PART",
                   Place("checkpoint of session and part", id, static_cast<int64_t>(whole)));
    }
    for (size_t i = whole; mend && i < rows.size(); ++i) {
      batch_.Delete(CheckpointKey(user_.key, id, i));
    }
    rows.resize(whole);
  }
}

void UserCheck::CheckSegments() {
  if (jobs_.contains(kSweepJob)) return;  // it removes what nothing names
  std::set<kv::SegmentId> named;
  for (const auto& [id, memory] : memories_) {
    for (const StatePart& part : memory.parts) named.insert(part.id);
  }
  for (const auto& [id, rows] : checkpoints_) {
    for (const CheckpointRow& row : rows) named.insert(row.part.id);
  }
  for (const auto& [id, session] : sessions_) {
    for (const MountEntry& mount : session.mounts) {
      for (const StatePart& part : mount.parts) named.insert(part.id);
    }
  }
  for (const auto& [id, row] : segments_) {
    if (named.contains(id)) continue;
    if (Found("ORPHAN_CHUNK", "segment " + base::ToHex(id))) batch_.DropSegment(user_.key, id);
  }
}

base::Status UserCheck::CheckMemoryIndex(const MemoryRecord& memory) {
  IndexUpdate missing{.memory = memory.id, .turns = {}};
  const std::set<int64_t>& rows = postings_[memory.id];
  if (!rows.contains(index::kDateLine)) missing.AddDate(core_, sessions_.at(memory.session));
  for (const int64_t number : memory.source_turns) {
    if (rows.contains(number)) continue;
    const auto turn = Read<TurnRecord>(*core_.store, TurnKey(user_.key, memory.session, number));
    if (turn.status().code() == absl::StatusCode::kNotFound) continue;  // a gap, found above
    KVASIR_RETURN_IF_ERROR(turn.status());
    if (turn->state == TurnRecord::State::kDone) missing.AddTurn(core_, *turn);
  }
  if (!missing.turns.empty() && Found("MEMORY_WITHOUT_INDEX", Place("memory and rows", memory.id,
                                                                    std::ssize(missing.turns)))) {
    missing.Put(user_.key, batch_);
  }
  return base::OkStatus();
}

base::Status UserCheck::CheckIndex() {
  for (const auto& [id, turns] : postings_) {
    const auto memory = memories_.find(id);
    std::set<int64_t> wanted;
    if (memory != memories_.end()) {
      wanted.insert(memory->second.source_turns.begin(), memory->second.source_turns.end());
      wanted.insert(index::kDateLine);
    }
    for (const int64_t turn : turns) {
      if (wanted.contains(turn)) continue;
      if (Found("INDEX_WITHOUT_MEMORY", Place("memory and turn", id, turn))) {
        batch_.Delete(PostingsKey(user_.key, id, turn));
      }
    }
  }
  for (const auto& [id, memory] : memories_) {
    if (sessions_.contains(memory.session)) KVASIR_RETURN_IF_ERROR(CheckMemoryIndex(memory));
  }
  return base::OkStatus();
}

void UserCheck::CheckJobs() {
  for (const auto& [id, job] : jobs_) {
    if (job.type != JobRecord::Type::kBuildMemory || sessions_.contains(id)) continue;
    if (!Found("JOB_WITHOUT_SESSION", "job " + id.Hex())) continue;
    batch_.Delete(JobKey(user_.key, id));
    core_.jobs.Remove(user_.key, id);
  }
}

base::Status UserCheck::Run() {
  KVASIR_RETURN_IF_ERROR(ReadAll());
  CheckTurns();
  CheckMemories();
  CheckCheckpoints();
  CheckSegments();
  KVASIR_RETURN_IF_ERROR(CheckIndex());
  CheckJobs();
  for (const store::RecordId& id : changed_sessions_) {
    batch_.Put(SessionKey(user_.key, id), Encode(sessions_.at(id)));
  }
  if (batch_.empty()) return base::OkStatus();
  user_.loaded = false;  // loaded anew as it is now stored
  KVASIR_RETURN_IF_ERROR(core_.store->Commit(batch_));
  absl::MutexLock lock(&user_.mutex);
  user_.Recount({.users = 1, .sessions = std::ssize(sessions_), .memories = std::ssize(memories_)});
  return base::OkStatus();
}

}  // namespace kvasir::service
