// Status: how an operation that can fail for reasons outside the program reports it (absl::Status, codes map 1:1 to gRPC).
//
// Makers take a fmt format string: InvalidArgument("{} tokens, the context holds {}", n, n_ctx). A message names the thing
// and both values. A status may carry a *reason* (the closed list of docs/api.md, e.g. MODEL_MISMATCH) and the *field* of
// the request it is about; the gRPC layer turns them into google.rpc.ErrorInfo and BadRequest.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir::base {

using absl::Status;
using absl::StatusOr;

inline Status OkStatus() { return Status(); }

// A status of `code` with the formatted message.
template <typename... Args>
Status MakeStatus(absl::StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

#define KVASIR_STATUS_MAKER_(Name)                                               \
  template <typename... Args>                                                    \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {              \
    return MakeStatus(absl::StatusCode::k##Name, format, std::forward<Args>(args)...); \
  }
KVASIR_STATUS_MAKER_(Aborted)
KVASIR_STATUS_MAKER_(AlreadyExists)
KVASIR_STATUS_MAKER_(Cancelled)
KVASIR_STATUS_MAKER_(DataLoss)
KVASIR_STATUS_MAKER_(DeadlineExceeded)
KVASIR_STATUS_MAKER_(FailedPrecondition)
KVASIR_STATUS_MAKER_(Internal)
KVASIR_STATUS_MAKER_(InvalidArgument)
KVASIR_STATUS_MAKER_(NotFound)
KVASIR_STATUS_MAKER_(OutOfRange)
KVASIR_STATUS_MAKER_(PermissionDenied)
KVASIR_STATUS_MAKER_(ResourceExhausted)
KVASIR_STATUS_MAKER_(Unauthenticated)
KVASIR_STATUS_MAKER_(Unavailable)
KVASIR_STATUS_MAKER_(Unimplemented)
#undef KVASIR_STATUS_MAKER_

// `status` with the reason (UPPER_SNAKE_CASE) attached. OK stays OK.
Status WithReason(Status status, std::string_view reason);
// The attached reason, or "" when there is none.
std::string Reason(const Status& status);

// `status` with the name of the request field it is about. OK stays OK.
Status WithField(Status status, std::string_view field);
// The attached field, or "" when there is none.
std::string Field(const Status& status);

// `status` with "context: " put before its message; code, reason and field are kept. OK stays OK.
Status Annotate(const Status& status, std::string_view context);

// absl's string_view is not std's in Debian 12; these cross the border without a copy.
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }
inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }

}  // namespace kvasir::base

#define KVASIR_CONCAT_INNER_(a, b) a##b
#define KVASIR_CONCAT_(a, b) KVASIR_CONCAT_INNER_(a, b)

// Returns from the enclosing function when `expr` (a Status) is not OK.
#define KVASIR_RETURN_IF_ERROR(expr)                       \
  do {                                                     \
    ::kvasir::base::Status kvasir_status_ = (expr);        \
    if (!kvasir_status_.ok()) return kvasir_status_;       \
  } while (false)

// Assigns the value of `expr` (a StatusOr) to `lhs`, or returns its error from the enclosing function.
#define KVASIR_ASSIGN_OR_RETURN(lhs, expr) \
  KVASIR_ASSIGN_OR_RETURN_IMPL_(KVASIR_CONCAT_(kvasir_or_, __LINE__), lhs, expr)
#define KVASIR_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return std::move(tmp).status();      \
  lhs = std::move(tmp).value()
