// SessionLayout: what stands in a session's part of the context, token by token, and which tokens
// attend to memories. A pure function of the session's turns.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/runtime/prompt.h"
#include "memory/service/records.h"

namespace kvasir::server {

// Tokens [begin, end) (logical positions) belong to one turn: its prompt, its reply and what closes
// the reply.
struct TurnSpan {
  int64_t turn = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool reads = false;  // attends to the mounted memories, not to the base alone
};

struct SessionLayout {
  int64_t offset = 0;        // of the first token
  std::vector<int32_t> ids;  // at logical positions offset, offset + 1, …
  std::vector<TurnSpan> turns;

  int64_t end() const { return offset + static_cast<int64_t>(ids.size()); }
};

// Whether tokens of a turn in `mode` attend to memories.
inline constexpr bool Reads(service::MemoryMode mode) {
  return mode == service::MemoryMode::kRead || mode == service::MemoryMode::kReadWrite;
}

// Whether the turn's tokens stand in the context: it ended, without a fault, and its content was
// not removed.
bool InContext(const service::TurnRecord& turn);

SessionLayout MakeLayout(const runtime::Prompt& prompt, int64_t offset,
                         const std::vector<service::TurnRecord>& history);

// Indexes of the mounts that a turn attends to, in order of position.
std::vector<size_t> MountsOf(const std::vector<service::MountEntry>& mounts, int64_t turn,
                             bool reads);

}  // namespace kvasir::server
