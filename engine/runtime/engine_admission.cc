// Which requests run: admission by pages and slots, fair over keys.
#include <algorithm>
#include <map>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

bool HasChat(const std::vector<LivePtr>& requests) {
  return std::any_of(requests.begin(), requests.end(), [](auto& r) { return r->chat(); });
}

void InsertById(std::vector<LivePtr>& requests, const LivePtr& request) {
  const auto at = std::lower_bound(requests.begin(), requests.end(), request,
                                   [](auto& a, auto& b) { return a->id < b->id; });
  requests.insert(at, request);
}

}  // namespace

void Engine::State::Admit() {
  while (const LivePtr next = NextWaiting()) {
    const bool full = static_cast<int64_t>(running.size()) >= options.requests_running_max;
    if (full && !SuspendFor(*next)) return;
    if (TryAdmit(next)) continue;
    if (!running.empty()) return;  // pages come back when those end
    Finish(next, FinishReason::kError,
           base::ResourceExhausted(
               "{} pages are free and no more can be freed, the request needs {}",
               pool->pages_available(model::PageKind::kTail),
               next->in.sequence->tail_->PagesNeeded(next->in.sequence->first_position_ +
                                                     static_cast<int64_t>(next->context.size()))));
  }
}

// Chat before background, then the key that was served least, then the oldest.
LivePtr Engine::State::NextWaiting() const {
  const bool chat = HasChat(waiting);
  if (!chat && HasChat(running)) return nullptr;
  const FairShare& counters_of_keys = chat ? chat_share : background_share;
  LivePtr next;
  for (const LivePtr& request : waiting) {
    if (request->chat() != chat) continue;
    if (next == nullptr || counters_of_keys.served(request->in.fairness_key) <
                               counters_of_keys.served(next->in.fairness_key)) {
      next = request;
    }
  }
  return next;
}

// Frees a slot for a chat request: a background request waits instead, or, so that every key has
// a slot, the youngest request of a key that has several. It keeps its pages.
bool Engine::State::SuspendFor(const LiveRequest& request) {
  if (!request.chat()) return false;
  LivePtr victim;
  for (const LivePtr& r : running) {
    if (!r->chat()) victim = r;
  }
  if (victim == nullptr && RunningOf(request.in.fairness_key) == 0) victim = YoungestOfCrowdedKey();
  if (victim == nullptr) return false;
  MoveToWaiting(victim);
  return true;
}

bool Engine::State::TryAdmit(const LivePtr& request) {
  Sequence& sequence = *request->in.sequence;
  const int64_t end = sequence.first_position_ + static_cast<int64_t>(request->context.size());
  const int64_t pages = sequence.tail_->PagesNeeded(end);
  // Every running request may need a page soon: room for those, so that admission is no exchange.
  const int64_t slack = static_cast<int64_t>(running.size());
  if (pages > 0 &&
      !MakeRoom(model::PageKind::kTail, pages + slack, request.get(), PageUse::kAdmit)) {
    return false;
  }
  if (!sequence.tail_->Reserve(end).ok()) return false;
  std::erase(waiting, request);
  InsertById(running, request);
  if (request->admit_us >= 0) return true;
  request->admit_us = deps.clock->MonotonicMicros();
  const std::lock_guard lock(mutex);
  --queued;
  if (--queued_of_key[request->in.fairness_key] == 0) queued_of_key.erase(request->in.fairness_key);
  return true;
}

void Engine::State::MoveToWaiting(LivePtr request) {
  KVASIR_CHECK(std::erase(running, request) == 1);
  InsertById(waiting, request);
}

int64_t Engine::State::RunningOf(const std::string& key) const {
  return std::count_if(running.begin(), running.end(),
                       [&](auto& r) { return r->in.fairness_key == key; });
}

LivePtr Engine::State::YoungestOfCrowdedKey() const {
  std::map<std::string, int64_t> running_of;
  for (const LivePtr& r : running) running_of[r->in.fairness_key] += r->chat() ? 1 : 0;
  LivePtr youngest;
  int64_t most = 1;
  for (const LivePtr& r : running) {
    if (!r->chat()) continue;
    const int64_t count = running_of[r->in.fairness_key];
    if (count > most || (youngest != nullptr && count == most && count > 1)) {
      youngest = r;
      most = count;
    }
  }
  return youngest;
}

}  // namespace kvasir::runtime
