// Memories: what a user's earlier sessions left, as attention states that can be listed, searched,
// mounted and deleted.
//
// Threads: all methods may be called concurrently; all block on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"
#include "engine/kv/segment.h"
#include "memory/service/records.h"
#include "memory/service/sessions.h"

namespace kvasir::service {

// One memory as the policy sees it.
struct Candidate {
  MemoryRecord memory;
  bool lexical_hit = false;  // has a word in common with the query
  double lexical_score = 0;  // BM25* (memory/index/lexical_index.h); 0 without a hit
  int64_t best_turn = 0;     // the turn of the best window that fits best; 0: none
};

// A loaded, verified state. `digest` names it in caches.
struct LoadedState {
  std::shared_ptr<const kv::KvSegment> segment;  // the parts joined
  base::Digest digest;
  bool from_ram = false;
  double load_ms = 0;
};

class Memories {
 public:
  virtual ~Memories() = default;

  // Errors of all: NotFound (also when deleted), FailedPrecondition reason ERASURE_IN_PROGRESS,
  // DataLoss, Unavailable.
  virtual base::StatusOr<MemoryRecord> Get(const UserRef& user, const std::string& memory) = 0;
  virtual base::StatusOr<Listed<MemoryRecord>> List(const UserRef& user, const ListPage& page) = 0;
  // The text it was built from, turn by turn.
  virtual base::StatusOr<std::vector<TurnRecord>> SourceTurns(const UserRef& user,
                                                              const MemoryRecord& memory) = 0;
  // Memories with a word in common with `query`, best first.
  virtual base::StatusOr<std::vector<Candidate>> Search(const UserRef& user,
                                                        const std::string& query,
                                                        int64_t top_k) = 0;
  // All live memories of the user but the one made from `session`, with their scores for `message`,
  // newest first. Queues builds of those whose state another model or build made (rebuild.h).
  virtual base::StatusOr<std::vector<Candidate>> Candidates(const UserRef& user,
                                                            const std::string& session,
                                                            const std::string& message) = 0;
  // Loads and verifies a state: RAM cache, else store; single flight per state; bounded.
  // `deadline_us` is on the monotonic clock.
  // Errors: DeadlineExceeded reason LOAD_TIMEOUT, DataLoss reason STATE_CORRUPT (recorded: the
  // memory becomes kCorrupt and a rebuild is queued), FailedPrecondition reason MODEL_MISMATCH or
  // NOT_READY, NotFound (deleted), Unavailable.
  virtual base::StatusOr<LoadedState> Load(const UserRef& user, const MemoryRecord& memory,
                                           int64_t deadline_us) = 0;
  // The same for a mount as a session recorded it; its parts stay stored while the session has it
  // mounted, whatever becomes of the memory but its deletion. Errors as Load.
  virtual base::StatusOr<LoadedState> LoadMount(const UserRef& user, const MountEntry& mount,
                                                int64_t deadline_us) = 0;
  // Builds a kRebuilding or kStale memory now, as a part of a turn of `user`, instead of in the
  // background. Errors: those of StateBuilder::Build; NotFound.
  virtual base::StatusOr<MemoryRecord> BuildNow(const UserRef& user, const std::string& memory) = 0;
  // Counts a use (written behind; may be lost in a crash).
  virtual void RecordUse(const UserRef& user, const store::RecordId& memory) = 0;
  // Deletes the memory, the content of its source turns, and every state that had it mounted. Gone
  // for every reader once OK.
  virtual base::Status Delete(const UserRef& user, const std::string& memory) = 0;
};

}  // namespace kvasir::service
