#include "engine/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/base/check.h"

namespace kvasir::base {
namespace {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// One loop is one epoch. The caller publishes the loop, raises `epoch`, works itself, then waits until every other thread
// has left the loop (`running` back to zero); so no thread can still read the old loop when the next is published.
struct ThreadPool::State {
  int threads = 1;
  int spin_us = 0;
  std::vector<std::thread> others;
  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  int64_t items = 0;
  const std::function<void(int64_t, int)>* fn = nullptr;

  void Work(int thread) {
    for (;;) {
      const int64_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= items) return;
      (*fn)(item, thread);
    }
  }

  void Loop(int thread) {
    uint32_t seen = 0;
    for (;;) {
      const auto deadline =
          std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
      while (epoch.load(std::memory_order_acquire) == seen) {
        for (int i = 0; i < 64 && epoch.load(std::memory_order_relaxed) == seen; ++i) Pause();
        if (std::chrono::steady_clock::now() >= deadline) epoch.wait(seen, std::memory_order_acquire);
      }
      ++seen;
      if (stop.load(std::memory_order_relaxed)) return;
      Work(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads, int spin_us) : state_(std::make_unique<State>()) {
  KVASIR_CHECK(threads >= 1);
  state_->threads = threads;
  state_->spin_us = spin_us;
  for (int i = 1; i < threads; ++i) {
    state_->others.emplace_back([state = state_.get(), i] { state->Loop(i); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->epoch.fetch_add(1, std::memory_order_release);
  state_->epoch.notify_all();
  for (auto& thread : state_->others) thread.join();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::ParallelFor(int64_t items, const std::function<void(int64_t, int)>& fn) {
  State& s = *state_;
  s.items = items;
  s.fn = &fn;
  s.next.store(0, std::memory_order_relaxed);
  if (s.threads == 1 || items <= 1) {
    s.Work(0);
    return;
  }
  s.running.store(s.threads - 1, std::memory_order_relaxed);
  s.epoch.fetch_add(1, std::memory_order_release);
  s.epoch.notify_all();
  s.Work(0);
  int spins = 0;
  for (int left; (left = s.running.load(std::memory_order_acquire)) != 0;) {
    if (++spins < 2000) {
      Pause();
    } else {
      s.running.wait(left, std::memory_order_acquire);
    }
  }
}

}  // namespace kvasir::base
