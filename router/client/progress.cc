#include "router/client/progress.h"

#include <fmt/format.h>

#include <chrono>

namespace kvasir::client {
namespace {

constexpr std::chrono::milliseconds kFirst{300};
constexpr std::chrono::milliseconds kNext{200};

}  // namespace

Progress::Progress(Output& output, std::string text) : output_(output), text_(std::move(text)) {
  if (output_.style().terminal && !output_.json()) thread_ = std::thread([this] { Run(); });
}

Progress::~Progress() { Stop(); }

void Progress::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::Run() {
  const auto start = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, shown ? kNext : kFirst, [&] { return stopped_; })) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    const std::string line = fmt::format("{} {:.0f} s", text_, waited.count());
    output_.notes() << "\r\x1b[K" << output_.Paint(Tint::kDim, line) << std::flush;
    shown = true;
  }
  if (shown) output_.notes() << "\r\x1b[K" << std::flush;
}

}  // namespace kvasir::client
