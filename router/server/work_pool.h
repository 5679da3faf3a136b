// WorkPool: threads for work that blocks on the disk or waits for the engine, so that neither
// gRPC's threads nor the engine's ever do.
//
// Threads: Offer and Post may be called concurrently, also from tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kvasir::server {

class WorkPool {
 public:
  // Starts `threads` ≥ 1 threads. At most `offered_max` offered tasks wait.
  WorkPool(int threads, size_t offered_max);
  // As Stop.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // New work: false when too much waits already or the pool has stopped.
  bool Offer(std::function<void()> task);
  // What finishes work that was accepted before; goes ahead of offered tasks and is bounded by what
  // was accepted. After Stop the task runs on the caller's thread.
  void Post(std::function<void()> task);
  // Runs all that waits, then joins the threads. Not from a task.
  void Stop();

 private:
  void Loop();

  const size_t offered_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> posted_, offered_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kvasir::server
