// KVASIR_CHECK: a condition that only a bug of ours can break. On in every build; prints file, line and condition, then
// aborts. Never use it on input from a request, a file or a peer: return a Status.
#pragma once

namespace kvasir::base {

// Prints the failed condition to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace kvasir::base

#define KVASIR_CHECK(condition)            \
  (__builtin_expect(!!(condition), 1)      \
       ? static_cast<void>(0)              \
       : ::kvasir::base::CheckFailed(__FILE__, __LINE__, #condition))
