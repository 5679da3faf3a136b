#include "router/server/session_layout.h"

#include <algorithm>

namespace kvasir::server {

bool InContext(const service::TurnRecord& turn) {
  return turn.state == service::TurnRecord::State::kDone && turn.finish_reason != "ERROR" &&
         !turn.prompt_ids.empty();
}

SessionLayout MakeLayout(const runtime::Prompt& prompt, int64_t offset,
                         const std::vector<service::TurnRecord>& history) {
  SessionLayout layout;
  layout.offset = offset;
  for (const service::TurnRecord& turn : history) {
    if (!InContext(turn)) continue;
    TurnSpan span{.turn = turn.number, .begin = layout.end(), .end = 0, .reads = Reads(turn.mode)};
    const std::vector<int32_t> reply = prompt.Reply(turn.reply_ids);
    layout.ids.insert(layout.ids.end(), turn.prompt_ids.begin(), turn.prompt_ids.end());
    layout.ids.insert(layout.ids.end(), reply.begin(), reply.end());
    span.end = layout.end();
    layout.turns.push_back(span);
  }
  return layout;
}

std::vector<size_t> MountsOf(const std::vector<service::MountEntry>& mounts, int64_t turn,
                             bool reads) {
  std::vector<size_t> seen;
  if (!reads) return seen;
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (!mounts[i].deleted && mounts[i].turn <= turn) seen.push_back(i);
  }
  std::ranges::sort(seen, {}, [&](size_t i) { return mounts[i].begin; });
  return seen;
}

}  // namespace kvasir::server
