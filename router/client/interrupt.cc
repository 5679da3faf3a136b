#include "router/client/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "engine/base/check.h"

namespace kvasir::client {
namespace {

std::atomic<int> raise_fd{-1};  // a signal handler has no argument of its own

}  // namespace

void Interrupt::Raise() {
  const int saved = errno;
  const int fd = raise_fd.load();
  const char byte = 1;
  if (fd >= 0 && write(fd, &byte, 1) < 0) {
    // The pipe is full: an interrupt is noted already.
  }
  errno = saved;
}

Interrupt::Interrupt() {
  KVASIR_CHECK(pipe2(fds_, O_CLOEXEC | O_NONBLOCK) == 0);
  KVASIR_CHECK(raise_fd.exchange(fds_[1]) == -1);
  struct sigaction action = {};
  action.sa_handler = [](int) { Raise(); };
  sigemptyset(&action.sa_mask);  // without SA_RESTART: a prompt that waits for a key wakes up
  sigaction(SIGINT, &action, &old_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &old_, nullptr);
  raise_fd = -1;
  close(fds_[0]);
  close(fds_[1]);
}

bool Interrupt::Take() {
  bool taken = false;
  char bytes[64];
  while (read(fds_[0], bytes, sizeof bytes) > 0) taken = true;
  return taken;
}

}  // namespace kvasir::client
