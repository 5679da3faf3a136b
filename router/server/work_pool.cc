#include "router/server/work_pool.h"

#include <utility>

#include "engine/base/check.h"

namespace kvasir::server {

WorkPool::WorkPool(int threads, size_t offered_max) : offered_max_(offered_max) {
  KVASIR_CHECK(threads >= 1);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

WorkPool::~WorkPool() { Stop(); }

bool WorkPool::Offer(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || offered_.size() >= offered_max_) return false;
  offered_.push_back(std::move(task));
  wake_.notify_one();
  return true;
}

void WorkPool::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      posted_.push_back(std::move(task));
      wake_.notify_one();
      return;
    }
  }
  task();
}

void WorkPool::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !posted_.empty() || !offered_.empty(); });
    auto& queue = posted_.empty() ? offered_ : posted_;
    if (queue.empty()) return;  // stopping, and nothing is left
    const std::function<void()> task = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

void WorkPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    stopping_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  std::deque<std::function<void()>> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(posted_);
  }
  for (const auto& task : left) task();
}

}  // namespace kvasir::server
