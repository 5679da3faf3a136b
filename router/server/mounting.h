// Mounting: from the memories of a user to what one turn attends to, with a reason for every one
// that it does not: candidates ► policy ► loads ► mounts in the engine's memory.
//
// Threads: concurrent calls allowed; they block on the store and on the engine. Failures of one
// memory are misses, never errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "memory/service/memory_tier.h"
#include "router/policy/choose_mounts.h"
#include "router/server/live_sessions.h"
#include "router/server/model_host.h"
#include "router/server/options.h"
#include "router/server/route_info.h"

namespace kvasir::server {

// What the choice is made for.
struct MountWish {
  service::UserRef user;
  const service::SessionRecord* session = nullptr;
  std::string message;
  bool first_turn = false;
  int64_t turn = 0;           // its number
  int64_t visible_from = 0;   // where its tokens begin; a first turn's is set by the caller later
  int64_t prompt_tokens = 0;  // of the turn, about
  int64_t output_tokens = 0;  // wanted at most
};

// A session's mounts for one turn.
struct MountOutcome {
  std::vector<ReadyMount> ready;           // all that can be attended to, in order of position
  std::vector<service::MountEntry> added;  // new in this turn
  RouteInfo route;
  bool had_candidates = false;
};

// Looks up the titles of a route that was read from a record; memories that were deleted since are
// taken out of it.
void FillTitles(service::MemoryTier& tier, const service::UserRef& user, RouteInfo& route);

class Mounting {
 public:
  Mounting(const Options& options, ModelHost& host, service::MemoryTier& tier,
           const base::Clock* clock)
      : options_(options), host_(host), tier_(tier), clock_(clock) {}

  // Brings the session's mounts into the engine's memory, using `kept` where they are there
  // already, and adds new ones. Errors: those of Memories::Candidates.
  base::StatusOr<MountOutcome> Mount(const MountWish& wish, const std::vector<ReadyMount>& kept);
  // The session's own mounts only: for a turn that does not read, in front of which others did.
  std::vector<ReadyMount> Keep(const MountWish& wish, const std::vector<ReadyMount>& kept,
                               RouteInfo* route);
  // Whether there is anything that a turn of `user` could mount. Errors: those of Memories::List.
  base::StatusOr<bool> HasMemories(const service::UserRef& user) const;
  // What Mount would choose, without loading anything.
  base::StatusOr<RouteInfo> Explain(const MountWish& wish);

  // Positions kept free for later mounts behind `used` positions of base and mounts.
  int64_t Slack(int64_t used) const;

 private:
  struct Choice {
    std::vector<service::Candidate> candidates;
    std::vector<policy::MountCandidate> seen;  // the same, as the policy sees them
    policy::MountChoice choice;
  };
  base::StatusOr<Choice> Choose(const MountWish& wish);
  policy::MountCandidate Snapshot(const MountWish& wish, const service::Candidate& candidate) const;
  policy::MountLimits Limits(const MountWish& wish) const;
  // Into the engine's memory. Errors: those of Memories::Load, BuildNow and Engine::MakeMountable.
  base::StatusOr<ReadyMount> Load(const MountWish& wish, service::MemoryRecord& memory,
                                  bool build_first, MountedInfo* info);
  base::StatusOr<ReadyMount> MakeReady(const store::RecordId& memory, service::LoadedState state,
                                       int64_t begin, MountedInfo* info);

  const Options& options_;
  ModelHost& host_;
  service::MemoryTier& tier_;
  const base::Clock* const clock_;
};

}  // namespace kvasir::server
