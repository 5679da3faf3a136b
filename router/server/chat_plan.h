// What is known of a turn while it is prepared and run. Internal to ChatTurns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "router/server/chat_turns.h"
#include "router/server/session_layout.h"

namespace kvasir::server {

struct ChatTurns::Plan {
  service::SessionRecord session;  // as it was before this turn
  service::MemoryMode mode = service::MemoryMode::kReadWrite;
  std::string date;
  bool first = false;               // nothing of the session stands in the context yet
  SessionLayout layout;             // without this turn
  std::vector<int32_t> own_prompt;  // what this turn adds
  std::vector<service::MountEntry> added;
  std::vector<service::MountEntry> mounts;  // the session's and `added`
  RouteInfo route;
  int64_t max_output = 0;  // what the context leaves of what was asked for

  int64_t tail_tokens = 0;    // of the session, present before
  int64_t run_tokens = 0;     // of the prompt given to the engine
  int64_t memory_tokens = 0;  // of base and mounts
  int64_t submit_us = 0;
};

}  // namespace kvasir::server
