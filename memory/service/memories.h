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
  double lexical_score = 0;  // BM25*; 0: no word in common
  int64_t best_turn = 0;     // turn number of the best window; 0: none
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

  // Errors: NotFound (also when deleted), DataLoss, Unavailable.
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
  // newest first.
  virtual base::StatusOr<std::vector<Candidate>> Candidates(const UserRef& user,
                                                            const std::string& session,
                                                            const std::string& message) = 0;
  // Loads and verifies a state: RAM cache, else store; single flight per state; bounded.
  // Errors: DeadlineExceeded reason LOAD_TIMEOUT, DataLoss reason STATE_CORRUPT (recorded: the
  // memory becomes kCorrupt and
  //         a rebuild is queued), FailedPrecondition reason MODEL_MISMATCH or NOT_READY, NotFound
  //         (deleted).
  virtual base::StatusOr<LoadedState> Load(const UserRef& user, const MemoryRecord& memory,
                                           int64_t deadline_us) = 0;
  // The same for a mount as a session recorded it. Errors as Load.
  virtual base::StatusOr<LoadedState> LoadMount(const UserRef& user, const MountEntry& mount,
                                                int64_t deadline_us) = 0;
  // Builds a kRebuilding memory now instead of in the background. Errors: those of
  // StateBuilder::Build; NotFound.
  virtual base::StatusOr<MemoryRecord> BuildNow(const UserRef& user, const std::string& memory) = 0;
  // Counts a use (written behind; may be lost in a crash).
  virtual void RecordUse(const UserRef& user, const store::RecordId& memory) = 0;
  // Deletes the memory, the content of its source turns, and every state that had it mounted. Gone
  // for every reader once OK.
  virtual base::Status Delete(const UserRef& user, const std::string& memory) = 0;
};

}  // namespace kvasir::service
