// Interrupt: turns Ctrl-C (SIGINT) into something that can be waited for.
//
// At most one object at a time; the old handling of the signal comes back with its end.
#pragma once

#include <csignal>

namespace kvasir::client {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable (poll) while an interrupt was not taken.
  int fd() const { return fds_[0]; }
  // Takes all interrupts so far; true when there was one.
  bool Take();
  // As if the user had pressed Ctrl-C. Async-signal-safe.
  static void Raise();

 private:
  int fds_[2] = {-1, -1};
  struct sigaction old_ = {};
};

}  // namespace kvasir::client
