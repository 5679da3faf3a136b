// Who gives pages up when they run out.
#include <algorithm>
#include <map>
#include <optional>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

// The one that all others outrank among those that `may` allows.
template <typename May>
LivePtr LowestRank(const std::vector<LivePtr>& requests, May may) {
  LivePtr lowest;
  for (const LivePtr& request : requests) {
    if (may(*request) && (lowest == nullptr || lowest->OutRanks(*request))) lowest = request;
  }
  return lowest;
}

}  // namespace

bool Engine::State::MakeRoom(model::PageKind kind, int64_t pages, const LiveRequest* requester,
                             PageUse use) {
  while (pool->pages_available(kind) < pages) {
    if (!EvictOldest() && !DropOneTail(requester, use)) return false;
  }
  return true;
}

// The least recently used of idle sequences and unreferenced mounts.
bool Engine::State::EvictOldest() {
  std::shared_ptr<Sequence> oldest;
  uint64_t oldest_use = 0;
  for (const auto& sequence : Sequences()) {
    const std::optional<uint64_t> use = sequence->EvictableSince();
    if (use && (oldest == nullptr || *use < oldest_use)) {
      oldest = sequence;
      oldest_use = *use;
    }
  }
  const std::optional<uint64_t> mount_use = mounts.OldestUnreferenced();
  if (mount_use && (oldest == nullptr || *mount_use < oldest_use)) {
    if (!mounts.EvictOldestUnreferenced()) return true;  // taken meanwhile: look again
    const std::lock_guard lock(mutex);
    ++counters.evicted_mounts;
    return true;
  }
  if (oldest == nullptr) return false;
  if (!oldest->EvictIfIdle()) return true;  // claimed meanwhile: look again
  const std::lock_guard lock(mutex);
  ++counters.evicted_sequences;
  return true;
}

// Tails of requests that wait, then a running request.
bool Engine::State::DropOneTail(const LiveRequest* requester, PageUse use) {
  const LivePtr waits = LowestRank(waiting, [&](const LiveRequest& r) {
    return &r != requester && r.in.sequence->tail_->pages() > 0;
  });
  if (waits != nullptr) {
    DropTail(*waits);
    return true;
  }
  const LivePtr victim = RunningVictim(requester, use);
  if (victim == nullptr) return false;
  DropTail(*victim);
  MoveToWaiting(victim);
  return true;
}

LivePtr Engine::State::RunningVictim(const LiveRequest* requester, PageUse use) const {
  if (use == PageUse::kGrow) {
    return LowestRank(running, [&](const LiveRequest& r) { return requester->OutRanks(r); });
  }
  if (requester != nullptr && !requester->chat()) return nullptr;
  LivePtr victim = LowestRank(running, [](const LiveRequest& r) { return !r.chat(); });
  if (victim == nullptr && requester != nullptr && RunningOf(requester->in.fairness_key) == 0) {
    victim = YoungestOfCrowdedKey();
  }
  return victim;
}

void Engine::State::DropTail(LiveRequest& request) {
  request.in.sequence->Truncate(request.in.sequence->first_position_);
  request.CountDrop();
  const std::lock_guard lock(mutex);
  ++counters.preemptions;
}

bool Engine::State::Reserve(const LivePtr& request, int64_t rows) {
  Sequence& sequence = *request->in.sequence;
  const int64_t end = sequence.end() + rows;
  const int64_t pages = sequence.tail_->PagesNeeded(end);
  if (pages == 0) return true;
  if (!MakeRoom(model::PageKind::kTail, pages, request.get(), PageUse::kGrow)) return false;
  return sequence.tail_->Reserve(end).ok();
}

}  // namespace kvasir::runtime
