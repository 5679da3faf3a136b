// Resume: makes the attention state of a session present again: the live sequence, else its stored
// parts, else nothing; what is missing is computed with the next prompt, from token ids.
//
// Threads: concurrent calls for different sessions; blocks on the store and the engine.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "memory/service/memory_tier.h"
#include "router/server/live_sessions.h"
#include "router/server/model_host.h"
#include "router/server/session_layout.h"

namespace kvasir::server {

struct ResumeWish {
  service::UserRef user;
  const service::SessionRecord* session = nullptr;
  const std::vector<service::MountEntry>* mounts =
      nullptr;  // the session's and those that join now
  const SessionLayout* layout = nullptr;
  int64_t turn = 0;        // the turn that comes, which begins at layout->end()
  bool reads = false;      // whether it attends to memories
  bool has_parts = false;  // whether a checkpoint may be stored
};

class Resume {
 public:
  Resume(ModelHost& host, service::MemoryTier& tier) : host_(host), tier_(tier) {}

  // Afterwards state.sequence is resident, its tail holds a prefix of the layout's tokens, and
  // tokens from layout->end() on attend to what the turn attends to. `state.mounts` must hold every
  // mount that can be attended to; others count as gone.
  // Errors: those of Sessions::LoadState; ResourceExhausted (no pages), Unavailable.
  base::Status Run(const ResumeWish& wish, SessionState& state);

 private:
  // Mounts of a turn's tokens.
  std::vector<runtime::SequenceMount> MountsFor(const ResumeWish& wish, const SessionState& state,
                                                int64_t turn, bool reads) const;
  // What the tokens of the layout and those behind it attend to.
  std::vector<runtime::MountChange> Changes(const ResumeWish& wish,
                                            const SessionState& state) const;
  bool IsUsable(const ResumeWish& wish, const SessionState& state) const;
  base::Status Restore(const ResumeWish& wish, SessionState& state);

  ModelHost& host_;
  service::MemoryTier& tier_;
};

}  // namespace kvasir::server
