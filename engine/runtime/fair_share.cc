#include "engine/runtime/fair_share.h"

#include <algorithm>
#include <limits>

#include "engine/base/check.h"

namespace kvasir::runtime {

int64_t FairShare::LeastActive() const {
  if (active_ == 0) return 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [key, counter] : keys_) {
    if (counter.live > 0) least = std::min(least, counter.served);
  }
  return least;
}

void FairShare::Enter(const std::string& key) {
  const int64_t least = LeastActive();
  Counter& counter = keys_[key];
  if (counter.live++ > 0) return;
  counter.served = std::max(counter.served, least);
  ++active_;
}

void FairShare::Leave(const std::string& key) {
  const auto found = keys_.find(key);
  KVASIR_CHECK(found != keys_.end() && found->second.live > 0);
  if (--found->second.live > 0) return;
  --active_;
  Prune();
}

// Forgets what has no effect: everything when nothing is active, else inactive keys that are not
// ahead of the least served active one; and all inactive keys when there are too many.
void FairShare::Prune() {
  const int64_t least = LeastActive();
  const bool all = active_ == 0 || keys_.size() - active_ > kInactiveMax;
  std::erase_if(keys_, [&](const auto& entry) {
    return entry.second.live == 0 && (all || entry.second.served <= least);
  });
}

void FairShare::Charge(const std::string& key, int64_t rows) {
  const auto found = keys_.find(key);
  KVASIR_CHECK(found != keys_.end() && found->second.live > 0);
  found->second.served += rows;
}

int64_t FairShare::served(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.served;
}

}  // namespace kvasir::runtime
