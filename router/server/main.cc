// kvasird: the server.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "router/server/config.h"
#include "router/server/protobuf_log.h"
#include "router/server/server.h"
#include "router/server/version.h"

namespace kvasir::server {
namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;

int Fail(const base::Status& status, int code) {
  std::fprintf(stderr, "kvasird: %s\n", std::string(base::ToStd(status.message())).c_str());
  return code;
}

// SIGTERM and SIGINT, blocked in all threads of the process and taken by Wait.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    KVASIR_CHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
    signal(SIGPIPE, SIG_IGN);
  }
  void Wait() const {
    int number = 0;
    while (sigwait(&set_, &number) != 0) {
    }
  }
  // The next signal ends the process at once; what was acknowledged is durable.
  void ExitAtNext(int code) const {
    std::thread([this, code] {
      Wait();
      _exit(code);
    }).detach();
  }

 private:
  sigset_t set_;
};

// A line that shows how much of the model is loaded, on a terminal only.
class Progress {
 public:
  void Show(double share) {
    const int percent = static_cast<int>(share * 100);
    if (!terminal_ || percent == shown_) return;
    shown_ = percent;
    std::fprintf(stderr, "\rloading the model: %3d %%", percent);
  }
  void End() const {
    if (shown_ >= 0) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  int shown_ = -1;
};

int Run(const std::vector<std::string>& arguments) {
  const auto line = ParseCommandLine(arguments, kVersion);
  if (!line.ok()) return Fail(line.status(), kUsage);
  if (!line->print.empty()) {
    std::fputs(line->print.c_str(), stdout);
    return kOk;
  }
  DropProtobufLog();
  static const Signals signals;
  static const base::RealClock clock;
  static base::SystemEntropy entropy;
  auto server = Server::Start(line->options, &clock, &entropy);
  if (!server.ok()) return Fail(server.status(), kFailed);
  // While it loads nothing is worth waiting for.
  std::atomic<bool> loading = true;
  std::atomic<bool> wanted = false;
  std::thread waiter([&] {
    signals.Wait();
    if (loading) _exit(kOk);
    wanted = true;
    wanted.notify_all();
  });
  Progress progress;
  const base::Status loaded = (*server)->Load([&](double share) { progress.Show(share); });
  progress.End();
  if (!loaded.ok()) {
    waiter.detach();
    std::fflush(nullptr);
    Fail(loaded, kFailed);
    _exit(kFailed);
  }
  loading = false;
  std::fprintf(stderr, "kvasird %s serves on port %d\n", kVersion, (*server)->port());
  wanted.wait(false);
  waiter.join();
  std::fprintf(stderr, "kvasird: stopping; a second signal ends it at once\n");
  signals.ExitAtNext(kFailed);
  (*server)->Stop();
  server->reset();
  return kOk;
}

}  // namespace
}  // namespace kvasir::server

int main(int argc, char** argv) {
  return kvasir::server::Run(std::vector<std::string>(argv + 1, argv + argc));
}
