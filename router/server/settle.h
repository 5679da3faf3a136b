// Settle: what happens to a session's state behind a reply: the engine runs what closes it, and
// what the tail gained is cut into parts and saved.
//
// Threads: concurrent calls for different sessions; blocks on the engine and the store.
#pragma once

#include <memory>
#include <vector>

#include "engine/base/status.h"
#include "memory/service/memory_tier.h"
#include "router/server/live_sessions.h"
#include "router/server/model_host.h"
#include "router/server/session_layout.h"

namespace kvasir::server {

inline constexpr int64_t kPartTokens = 256;

// A range to cut, and the turns that lie in it.
struct PartRange {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<kv::TurnRange> turns;
};
// Parts of at most kPartTokens that cover [begin, end).
std::vector<PartRange> PartRanges(const SessionLayout& layout, int64_t begin, int64_t end);

class Settle {
 public:
  Settle(ModelHost& host, service::MemoryTier& tier) : host_(host), tier_(tier) {}

  // `layout`: with the turn that just ended. `save`: false for what leaves no state on disk.
  // Errors: those of Sessions::SaveState and of the engine; the session goes on without, and the
  // next call makes up for it.
  base::Status Run(const service::UserRef& user, const std::string& session,
                   const SessionLayout& layout, bool save, SessionState& state);

 private:
  base::Status CloseReply(const service::UserRef& user, const SessionLayout& layout,
                          const std::shared_ptr<runtime::Sequence>& sequence);

  ModelHost& host_;
  service::MemoryTier& tier_;
};

}  // namespace kvasir::server
