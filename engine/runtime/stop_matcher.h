// StopMatcher: finds stop strings in a stream of bytes and holds back what could still become one.
//
// The stream ends before the stop string that is complete first (of those that end at the same
// byte, the longest). The result does not depend on how the stream is cut into pieces.
// Threads: a value; one thread at a time. Copying clones it (speculation).
// Source: Knuth, Morris, Pratt, "Fast pattern matching in strings", SIAM J. Comput. 1977.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace kvasir::runtime {

inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopBytesMax = 256;
// Calls of Push that Rollback can undo.
inline constexpr size_t kStopRollbackMax = 16;

class StopMatcher {
 public:
  // Matches nothing.
  StopMatcher();
  // Errors: InvalidArgument (reason INVALID_FIELD, field "stop"): more than kStopStringsMax, an
  // empty one, one longer than kStopBytesMax.
  static base::StatusOr<StopMatcher> Create(std::vector<std::string> stops);

  // Adds bytes and returns those that are certain not to belong to a stop string. After a match the
  // rest of the bytes is dropped and nothing more is returned.
  std::string Push(std::string_view bytes);
  // Ends the stream: the bytes held back, or none after a match.
  std::string Flush();
  // Undoes the last `pushes` calls of Push. REQUIRES: pushes ≤ kStopRollbackMax and ≤ calls so far.
  void Rollback(size_t pushes);

  bool stopped() const { return state_.stopped; }
  // Bytes held back now, fewer than kStopBytesMax.
  std::string_view pending() const { return state_.held; }

 private:
  struct Pattern {
    std::string text;
    std::vector<int32_t> border;  // [bytes + 1] longest proper border of each prefix
  };
  struct State {
    std::vector<int32_t> matched;  // [patterns] bytes of each that the stream ends with
    std::string held;
    bool stopped = false;
  };
  void PushByte(char byte, std::string& certain);

  std::shared_ptr<const std::vector<Pattern>> patterns_;
  State state_;
  std::deque<State> history_;  // before the last Push calls, oldest first
};

}  // namespace kvasir::runtime
