// Learning: what of a session becomes a memory. Internal.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/record_access.h"

namespace kvasir::service {

// Whether the turn may become part of a memory: done, not deleted, READ_WRITE.
bool Learnable(const SessionRecord& session, const TurnRecord& turn);
// Whether the session's own state is fit to be a memory's: READ_WRITE, built right behind the base,
// nothing mounted, nothing deleted.
bool Promotable(const SessionRecord& session, int64_t base_tokens);

base::StatusOr<std::vector<TurnRecord>> LearnableTurns(const store::Store& store,
                                                       const store::UserKey& user,
                                                       const SessionRecord& session);
std::vector<int64_t> Numbers(const std::vector<TurnRecord>& turns);

// First words of a message, at most 60 bytes, cut between words and characters.
std::string TitleOf(std::string_view user_text);

// The live memory of the session, or a new record for it (not yet stored). `title_of`: its first
// user message. Errors: ResourceExhausted reason MEMORY_QUOTA_EXCEEDED.
base::StatusOr<MemoryRecord> MemoryOf(Core& core, UserState& user, const SessionRecord& session,
                                      std::string_view first_message);

// Whether the state was made by the served model as it is built now.
bool IsCurrent(const Core& core, const MemoryRecord& memory);
// Whether the memory's state holds exactly these turns and is current.
bool IsComplete(const Core& core, const MemoryRecord& memory, const std::vector<int64_t>& turns);

// Rows of the lexical index that a commit writes.
struct IndexUpdate {
  store::RecordId memory;
  std::map<int64_t, index::TermCounts> turns;

  void AddDate(const Core& core, const SessionRecord& session);
  void AddTurn(const Core& core, const TurnRecord& turn);
  void Put(const store::UserKey& user, store::Batch& batch) const;
  // After the commit.
  void Apply(UserState& user) const;
};

// What a session still has to do for its memory to hold all its learnable turns.
struct MemoryPlan {
  // The memory as it is until its state is built; nothing when it is complete or there is nothing
  // to learn. One with an older state stays mountable as kStale.
  std::optional<MemoryRecord> memory;
  IndexUpdate index;
  std::optional<JobRecord> job;  // builds the state from text, due at once
};
// Plans it and names the memory in `session`; nothing is stored.
// Errors: ResourceExhausted (reason MEMORY_QUOTA_EXCEEDED, LIMIT_REACHED), DataLoss, Unavailable.
base::StatusOr<MemoryPlan> PlanMemory(Core& core, UserState& user, SessionRecord& session);

}  // namespace kvasir::service
