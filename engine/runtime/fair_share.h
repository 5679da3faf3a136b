// FairShare: how many rows each fairness key was served, and whose turn it is: the virtual token
// counter of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024, section 4, with
// equal weights for prompt and output tokens.
//
// A key that becomes active starts at least where the least served active key stands, so idle time
// is never saved up. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace kvasir::runtime {

class FairShare {
 public:
  // Inactive keys whose counters are remembered, at most.
  static constexpr size_t kInactiveMax = 4096;

  // One more, one fewer, live request of `key`. REQUIRES: Leave follows Enter.
  void Enter(const std::string& key);
  void Leave(const std::string& key);
  // REQUIRES: the key is active.
  void Charge(const std::string& key, int64_t rows);
  int64_t served(const std::string& key) const;
  size_t keys() const { return keys_.size(); }

 private:
  struct Counter {
    int64_t served = 0;
    int64_t live = 0;
  };
  int64_t LeastActive() const;  // 0 when none is active
  void Prune();

  std::map<std::string, Counter> keys_;
  size_t active_ = 0;
};

}  // namespace kvasir::runtime
