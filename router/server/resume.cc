#include "router/server/resume.h"

#include <algorithm>
#include <utility>

#include "router/server/awaited.h"

namespace kvasir::server {
namespace {

using Parts = std::vector<std::shared_ptr<const kv::KvSegment>>;

bool Same(const std::vector<runtime::SequenceMount>& a,
          const std::vector<runtime::SequenceMount>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.begin == y.begin && x.segment->resident->digest() == y.segment->resident->digest();
  });
}

// The parts that hold the layout's tokens, from its first on.
Parts Fitting(const Parts& parts, const SessionLayout& layout) {
  Parts fitting;
  int64_t end = layout.offset;
  for (const auto& part : parts) {
    const std::vector<int32_t>& tokens = part->info().tokens;
    if (part->info().first_position != end || end + part->logical_tokens() > layout.end()) break;
    const auto at = layout.ids.begin() + (end - layout.offset);
    if (!std::equal(tokens.begin(), tokens.end(), at)) break;
    end += part->logical_tokens();
    fitting.push_back(part);
  }
  return fitting;
}

}  // namespace

std::vector<runtime::SequenceMount> Resume::MountsFor(const ResumeWish& wish,
                                                      const SessionState& state, int64_t turn,
                                                      bool reads) const {
  std::vector<runtime::SequenceMount> mounts = {host_.base()};
  for (const size_t i : MountsOf(*wish.mounts, turn, reads)) {
    const service::MountEntry& entry = (*wish.mounts)[i];
    const auto ready = std::ranges::find_if(state.mounts, [&](const ReadyMount& one) {
      return one.memory == entry.memory && one.mount.begin == entry.begin;
    });
    if (ready != state.mounts.end()) mounts.push_back(ready->mount);
  }
  return mounts;
}

std::vector<runtime::MountChange> Resume::Changes(const ResumeWish& wish,
                                                  const SessionState& state) const {
  std::vector<runtime::MountChange> changes;
  const auto add = [&](int64_t from, int64_t turn, bool reads) {
    auto mounts = MountsFor(wish, state, turn, reads);
    if (!changes.empty() && Same(changes.back().mounts, mounts)) return;
    changes.push_back({from, std::move(mounts)});
  };
  for (const TurnSpan& span : wish.layout->turns) add(span.begin, span.turn, span.reads);
  add(wish.layout->end(), wish.turn, wish.reads);
  return changes;
}

bool Resume::IsUsable(const ResumeWish& wish, const SessionState& state) const {
  if (state.sequence == nullptr) return false;
  const runtime::Sequence::View view = state.sequence->view();
  if (!view.resident || view.running || view.first_position != wish.layout->offset) return false;
  const std::vector<int32_t> tokens = state.sequence->tokens();
  return tokens.size() <= wish.layout->ids.size() &&
         std::equal(tokens.begin(), tokens.end(), wish.layout->ids.begin());
}

base::Status Resume::Restore(const ResumeWish& wish, SessionState& state) {
  Parts parts;
  if (wish.has_parts) {
    KVASIR_ASSIGN_OR_RETURN(parts, tier_.sessions().LoadState(wish.user, wish.session->name));
    parts = Fitting(parts, *wish.layout);
  }
  const std::vector<runtime::MountChange> changes = Changes(wish, state);
  base::Status restored = base::OkStatus();
  do {
    KVASIR_ASSIGN_OR_RETURN(state.sequence,
                            host_.engine().NewSequenceWithChanges(wish.layout->offset, changes));
    if (parts.empty()) break;
    restored = Await<base::Status>(
        [&](const auto& done) { host_.engine().Restore(state.sequence, parts, done); });
    if (restored.ok()) break;
    if (absl::IsResourceExhausted(restored) || absl::IsUnavailable(restored)) return restored;
    parts.clear();  // made in another context than the one there is now: computed again
  } while (true);
  state.saved_end = wish.layout->offset;
  state.last_part_begin = -1;
  for (const auto& part : parts) {
    state.last_part_begin = part->info().first_position;
    state.saved_end = state.last_part_begin + part->logical_tokens();
  }
  return base::OkStatus();
}

base::Status Resume::Run(const ResumeWish& wish, SessionState& state) {
  if (!IsUsable(wish, state)) return Restore(wish, state);
  const int64_t from = wish.layout->end();
  auto mounts = MountsFor(wish, state, wish.turn, wish.reads);
  // The last change may stand behind the tail's end, where mounts() does not look yet.
  const bool settled = state.sequence->view().end == from;
  if (settled && Same(state.sequence->mounts(), mounts)) return base::OkStatus();
  return host_.engine().SetMounts(state.sequence, {from, std::move(mounts)});
}

}  // namespace kvasir::server
