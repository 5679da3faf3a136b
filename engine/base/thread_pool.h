// ThreadPool: a fixed set of threads that run one parallel loop at a time (the forward pass of a step).
//
// Which thread runs which item is not fixed, so an item's result must not depend on it: every item writes only its own
// output. That rule is what makes results independent of the number of threads.
// Threads: ParallelFor from one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace kvasir::base {

class ThreadPool {
 public:
  // `threads` ≥ 1 counts the calling thread: threads − 1 are started. They spin for about `spin_us` after a loop, then
  // sleep until the next.
  explicit ThreadPool(int threads, int spin_us = 50);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs fn(item, thread) for every item of [0, items) and returns when all are done. `thread` is in [0, threads()).
  // Items are handed out in ascending order, one at a time. `fn` must not throw and must not call ParallelFor.
  void ParallelFor(int64_t items, const std::function<void(int64_t item, int thread)>& fn);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::base
