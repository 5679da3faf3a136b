// LiveSessions: the sessions that this server has in RAM: which turn each of them runs, which one
// waits, and the attention state that is kept between turns.
//
// A session is *held* by one turn at a time, from Admit to Release: only the holder touches its
// state. When something the state depends on is deleted, the holder's turn is cancelled and the
// state is dropped at its Release; an idle session's state is dropped at once.
//
// Threads: all methods may be called concurrently; none blocks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/engine.h"
#include "memory/service/memory_tier.h"
#include "router/server/live_turn.h"

namespace kvasir::server {

// A memory that a session has mounted, in the engine's memory.
struct ReadyMount {
  store::RecordId memory;
  base::Digest digest;  // its key among the engine's mountable segments
  runtime::SequenceMount mount;
};

// What a session keeps in RAM between two turns.
struct SessionState {
  std::shared_ptr<runtime::Sequence> sequence;  // null: must be restored
  std::vector<ReadyMount> mounts;               // without their segments while the session is idle
  // Which positions of the tail are stored: [offset, saved_end), the last part from last_part_begin
  // on. −1: not known, nothing is saved before it is restored.
  int64_t saved_end = -1;
  int64_t last_part_begin = -1;
};

class LiveSessions final : public service::DeletionListener {
 public:
  struct Options {
    int64_t sessions_max = 1024;  // kept in RAM; the least recently used goes
    int64_t turns_max = 272;      // held and waiting, all sessions together
  };
  explicit LiveSessions(const Options& options) : options_(options) {}

  enum class Admission {
    kHolds,   // the turn may begin
    kWaits,   // it begins when the turn before is stored: Release returns it
    kJoined,  // `other` is the same request
    kBusy,    // another turn runs or waits
  };
  struct Admitted {
    Admission admission = Admission::kBusy;
    std::shared_ptr<LiveTurn> other;  // the turn that runs, when kJoined
  };
  // Errors: AlreadyExists reason REQUEST_ID_REUSED, ResourceExhausted reason QUEUE_FULL.
  base::StatusOr<Admitted> Admit(const std::shared_ptr<LiveTurn>& turn);

  // The state of the session that `turn` holds; the session keeps none until Release.
  SessionState Take(const LiveTurn& turn);
  // Says what the turn reads from now on. False when something of it was deleted a moment ago.
  bool Attend(const LiveTurn& turn, const std::vector<ReadyMount>& mounts);
  // The reply is complete: the turn is no longer found, what follows only stores its state.
  void EndReply(const LiveTurn& turn);
  // Gives the session back with the state it keeps, calls what waits for that (WhenStored), and
  // returns the turn that waited, which holds it now.
  std::shared_ptr<LiveTurn> Release(const LiveTurn& turn, SessionState state);

  // Calls `then` once no turn holds the session; at once when none does. False when a reply is
  // being made: then it is not called.
  bool WhenStored(const service::UserRef& user, const std::string& session,
                  std::function<void()> then);

  // Calls `then` once the states of all replies that `user` has had are stored: what was said a
  // moment ago can then be remembered. At once when none is being stored.
  void WhenUserStored(const service::UserRef& user, std::function<void()> then);

  // The turn that runs in a session, or null.
  std::shared_ptr<LiveTurn> Running(const service::UserRef& user, const std::string& session) const;
  std::vector<std::shared_ptr<LiveTurn>> AllTurns() const;
  // Sessions that are held, and turns that wait for one.
  int64_t held() const;
  // Blocks until held() is 0, `us` microseconds at most; false when it is not.
  bool WaitUntilIdle(int64_t us);

  // Mountable segments of deleted memories are forgotten there.
  void SetEngine(runtime::Engine* engine);

  void OnMemoryDeleted(const service::UserRef& user, const store::RecordId& memory) override;
  void OnSessionInvalidated(const service::UserRef& user, const std::string& session,
                            bool deleted) override;
  void OnUserErased(const service::UserRef& user) override;

 private:
  using Key = std::pair<service::UserRef, std::string>;
  struct Session {
    std::shared_ptr<LiveTurn> holder;   // null: idle
    bool reply_ended = false;           // the holder only stores its state
    std::shared_ptr<LiveTurn> waiting;  // the turn that comes next
    bool voided = false;                // its state is dropped at Release
    SessionState state;
    std::vector<std::function<void()>> when_stored;
    std::vector<store::RecordId> attended;
    std::list<Key>::iterator by_use;  // in idle_, when idle
  };

  static Key KeyOf(const LiveTurn& turn) { return {turn.call.user, turn.call.session}; }
  Session& Held(const LiveTurn& turn);
  // Voids the state of a session and cancels its turn. Dropped states go to `dropped`.
  void Void(Session& session, std::vector<SessionState>& dropped);
  void ForgetMountables(const store::RecordId& memory);
  void Trim(std::vector<SessionState>& dropped);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable idle_changed_;  // turns_ became 0
  std::map<Key, Session> sessions_;
  std::list<Key> idle_;  // least recently used first
  int64_t turns_ = 0;
  runtime::Engine* engine_ = nullptr;
  // Memories deleted lately: a turn that chose one before must not begin.
  std::set<store::RecordId> deleted_;
  std::deque<store::RecordId> deleted_order_;
  std::map<store::RecordId, std::pair<service::UserRef, std::set<base::Digest>>> mountables_;
};

}  // namespace kvasir::server
