// Awaited: a value that another thread gives once and a work thread waits for.
//
// Threads: one sets, one waits.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace kvasir::server {

template <typename T>
class Awaited {
 public:
  void Set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    set_.notify_all();
  }
  T Wait() {
    std::unique_lock lock(mutex_);
    set_.wait(lock, [&] { return value_.has_value(); });
    return *std::move(value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  std::optional<T> value_;
};

// Calls start(done) and returns what `done` was called with. `start` must see to it that `done` is
// called exactly once, on any thread.
template <typename T, typename Start>
T Await(const Start& start) {
  const auto awaited = std::make_shared<Awaited<T>>();
  start([awaited](T value) { awaited->Set(std::move(value)); });
  return awaited->Wait();
}

}  // namespace kvasir::server
