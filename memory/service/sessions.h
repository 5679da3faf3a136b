// Sessions: conversations and their turns, durably. The order of a turn: BeginTurn (synced before
// the first delta is sent), FinishTurn (synced before `finish` is sent), SaveState (behind the
// reply).
//
// Threads: all methods may be called concurrently; all block on disk. One turn of a session runs at
// a time: BeginTurn refuses a second one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kv/segment.h"
#include "memory/service/records.h"

namespace kvasir::service {

// What Chat decided before it starts; becomes part of the turn and of the session.
struct TurnStart {
  TurnRecord turn;      // number, create_us and state are filled in
  int64_t offset = -1;  // of the session, when this is its first turn
  std::string date;     // likewise
  std::vector<MountEntry> mounts_added;
};

struct ListPage {
  int64_t size = 50;  // 1 to 1000
  std::string
      after;  // position of the last entry seen, from the page before; empty: the first page
};
template <typename T>
struct Listed {
  std::vector<T> items;
  std::string next;  // empty on the last page
};

// A session that was found by its handle.
struct HandledSession {
  UserRef user;
  SessionRecord session;
};

// FailedPrecondition reason MODEL_MISMATCH when the turns of the session hold token ids of another
// model than `served`: they mean nothing to it.
base::Status CheckSessionModel(const SessionRecord& session, const kv::ModelId& served);

class Sessions {
 public:
  virtual ~Sessions() = default;

  // `name` empty: one is made. Creates the user on its first use.
  // Errors: AlreadyExists (the name is taken), InvalidArgument, ResourceExhausted reason
  // LIMIT_REACHED, Unavailable. Every method: FailedPrecondition reason ERASURE_IN_PROGRESS.
  virtual base::StatusOr<SessionRecord> Create(const UserRef& user,
                                               const SessionRecord& wanted) = 0;
  // A name for `session` (its id) of `user` that holds as long as the session does, over restarts
  // too: 64 hexadecimal digits that say nothing of either.
  virtual std::string HandleOf(const UserRef& user, const store::RecordId& session) const = 0;
  // Errors of these: NotFound, DataLoss, Unavailable.
  // NotFound also for a session of another tenant, and for what is no handle.
  virtual base::StatusOr<HandledSession> FindHandle(const std::string& tenant,
                                                    const std::string& handle) = 0;
  virtual base::StatusOr<SessionRecord> Get(const UserRef& user, const std::string& session) = 0;
  virtual base::StatusOr<Listed<SessionRecord>> List(const UserRef& user, const ListPage& page) = 0;
  virtual base::StatusOr<TurnRecord> GetTurn(const UserRef& user, const std::string& session,
                                             int64_t number) = 0;
  virtual base::StatusOr<Listed<TurnRecord>> ListTurns(const UserRef& user,
                                                       const std::string& session,
                                                       const ListPage& page) = 0;
  // All turns in order, for building a prompt or a state. Bounded by the context: at most
  // Options::session_turns_max.
  virtual base::StatusOr<std::vector<TurnRecord>> History(const UserRef& user,
                                                          const std::string& session) = 0;
  // The turn of this request id within 24 h, if any.
  virtual base::StatusOr<std::optional<TurnRecord>> FindRequest(const UserRef& user,
                                                                const std::string& session,
                                                                const std::string& request_id) = 0;

  // Makes the turn durable as kRunning and returns it with its number.
  // Errors: Aborted reason SESSION_BUSY (a turn runs), DELETED (a memory of mounts_added is gone);
  // FailedPrecondition reason SESSION_CLOSED, MODEL_MISMATCH (its turns are of another model);
  // NotFound; InvalidArgument (a first turn without offset and date); ResourceExhausted reason
  // LIMIT_REACHED (turns, bytes).
  virtual base::StatusOr<TurnRecord> BeginTurn(const UserRef& user, const std::string& session,
                                               TurnStart start) = 0;
  // Makes reply, ids, usage and finish reason durable. The state becomes kDone, or kFailed when
  // `turn` says so.
  // Errors: NotFound (deleted meanwhile), Aborted (an erasure came between; nothing was written),
  // Unavailable.
  virtual base::Status FinishTurn(const UserRef& user, const TurnRecord& turn) = 0;
  // Saves what the session's tail gained: `parts` continue the stored ones at the end of one of
  // them; stored parts past it are replaced (the last one when `replaces_last`; damaged ones that
  // LoadState left out). In the same commit a promotable session's memory and its index
  // documents are created or extended. `turn`: the last turn whose tokens are all in the parts. An
  // incognito or closed session: nothing is written. Errors: Aborted (deleted or erased meanwhile),
  // InvalidArgument (not exact, of another model, a gap), ResourceExhausted reason
  // MEMORY_QUOTA_EXCEEDED, NotFound (the user's key), Unavailable; nothing was written.
  virtual base::Status SaveState(const UserRef& user, const std::string& session, int64_t turn,
                                 const std::vector<std::shared_ptr<const kv::KvSegment>>& parts,
                                 bool replaces_last) = 0;
  // The stored parts of the session's own tail, in order, loaded and verified; shorter when one is
  // damaged or of another model (the rest is computed again from token ids). Never fails for
  // damage. Errors: NotFound, Unavailable.
  virtual base::StatusOr<std::vector<std::shared_ptr<const kv::KvSegment>>> LoadState(
      const UserRef& user, const std::string& session) = 0;
  // Closes it; its memory is final, or a durable job that builds it is queued; the checkpoint and
  // the content of incognito turns go. Idempotent. Errors: NotFound, Aborted reason SESSION_BUSY,
  // ResourceExhausted (jobs, memories), DataLoss, Unavailable.
  virtual base::StatusOr<SessionRecord> Close(const UserRef& user, const std::string& session) = 0;
  // Removes session, turns, states and its memory. Gone for every reader once OK.
  virtual base::Status Delete(const UserRef& user, const std::string& session) = 0;
};

}  // namespace kvasir::service
