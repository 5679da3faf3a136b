// Progress: a line that shows that work goes on and for how long; gone when the object goes.
//
// Writes to a terminal only, and nothing during the first moment. Threads: made and destroyed by
// one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "router/client/output.h"

namespace kvasir::client {

class Progress {
 public:
  Progress(Output& output, std::string text);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Removes the line; nothing is written by this object after it returns.
  void Stop();

 private:
  void Run();

  Output& output_;
  const std::string text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace kvasir::client
