// ChatTurns: runs the turns of all sessions, from the call to the stored state. Knows nothing of
// gRPC: what happens becomes events of a LiveTurn.
//
// A turn: admitted (LiveSessions) ► prepared on a work thread (mounts, state, the durable record) ►
// run by the engine ► finished on a work thread (durable, then the last events) ► settled (state
// saved behind the reply).
//
// Threads: all methods may be called concurrently; Start does not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "memory/service/memory_tier.h"
#include "router/server/live_sessions.h"
#include "router/server/live_turn.h"
#include "router/server/metrics.h"
#include "router/server/model_host.h"
#include "router/server/mounting.h"
#include "router/server/options.h"
#include "router/server/resume.h"
#include "router/server/settle.h"
#include "router/server/work_pool.h"

namespace kvasir::server {

// Sums since the start.
struct ChatTotals {
  std::atomic<int64_t> finished_turns = 0;
  std::atomic<int64_t> computed_tokens = 0;
  std::atomic<int64_t> session_cached_tokens = 0;
  std::atomic<int64_t> memory_tokens = 0;  // what mounted memories stood for, without the base
  std::atomic<int64_t> output_tokens = 0;
};

class ChatTurns {
 public:
  // Everything must outlive it; `metrics` may be null.
  struct Dependencies {
    const Options* options = nullptr;
    ModelHost* host = nullptr;
    service::MemoryTier* tier = nullptr;
    LiveSessions* sessions = nullptr;
    WorkPool* pool = nullptr;
    const base::Clock* clock = nullptr;
    Metrics* metrics = nullptr;
  };
  explicit ChatTurns(const Dependencies& dependencies);

  // Accepts a call and returns the turn whose log will hold its events: a new one, or the one that
  // this request_id stands for. What goes wrong later ends the log.
  // Errors: Aborted reason SESSION_BUSY, AlreadyExists reason REQUEST_ID_REUSED, ResourceExhausted
  // reason QUEUE_FULL, Unavailable reason SERVER_DRAINING.
  base::StatusOr<std::shared_ptr<LiveTurn>> Start(ChatCall call);

  // A turn that runs, or null.
  std::shared_ptr<LiveTurn> Running(const service::UserRef& user, const std::string& session,
                                    int64_t number) const;
  // What `message` would mount as the session's next turn.
  base::StatusOr<RouteInfo> Explain(const service::UserRef& user, const std::string& session,
                                    const std::string& message);

  // Cancels turns whose readers did not come back. Called now and then.
  void Tick();
  // Refuses new turns from now on.
  void Drain() { draining_ = true; }
  // Cancels every turn that runs or waits.
  void CancelAll();
  // Turns and settlings that are not done.
  int64_t unfinished() const { return deps_.sessions->held(); }
  const ChatTotals& totals() const { return totals_; }

 private:
  using TurnPtr = std::shared_ptr<LiveTurn>;
  // A turn while it is prepared.
  struct Plan;

  // On a work thread.
  void Prepare(const TurnPtr& turn);
  void PrepareNow(const TurnPtr& turn);
  void Replay(const TurnPtr& turn, base::Status otherwise);
  bool ReplayIfKnown(const TurnPtr& turn, base::Status* failure);
  // The events of a stored turn. Errors: those of ReplayEvents; reason MODEL_MISMATCH.
  base::StatusOr<std::vector<TurnEvent>> EventsOf(const ChatCall& call,
                                                  const service::TurnRecord& record) const;
  base::Status Begin(const TurnPtr& turn, SessionState& state);
  base::Status ReadSession(const TurnPtr& turn, Plan& plan);
  base::Status ChooseMounts(const TurnPtr& turn, Plan& plan, SessionState& state);
  base::Status CheckRoom(const TurnPtr& turn, Plan& plan);
  base::Status MakeDurable(const TurnPtr& turn, Plan& plan);
  base::Status ResumeFor(const TurnPtr& turn, const Plan& plan, SessionState& state);
  base::Status SubmitOnce(const TurnPtr& turn, Plan& plan, const SessionState& state);
  base::Status SubmitTo(const TurnPtr& turn, Plan& plan, SessionState& state);
  void Finish(const TurnPtr& turn, const runtime::Finish& finish, const std::shared_ptr<Plan>& plan,
              SessionState state);
  void SettleAndRelease(const TurnPtr& turn, bool ended_well, SessionState state);
  void ReleaseTo(const TurnPtr& turn, SessionState state);
  void Fail(const TurnPtr& turn, const base::Status& status);
  // `mounted_tokens`: what the mounts stand for; usage.memory_tokens has the base, too.
  void Count(const service::TurnUsage& usage, int64_t mounted_tokens);

  const Dependencies deps_;
  Mounting mounting_;
  Resume resume_;
  Settle settle_;
  std::atomic<bool> draining_ = false;
  ChatTotals totals_;
};

}  // namespace kvasir::server
