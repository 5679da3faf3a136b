// Reasons: the closed list of ErrorInfo reasons that a client can meet, each with its one gRPC
// code.
//
// docs/api.md documents the same list; a test compares the two.
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace kvasir::server {

// The detail that goes with a reason besides ErrorInfo.
enum class ReasonDetail {
  kNone,
  kBadRequest,    // google.rpc.BadRequest, when the field is known
  kPrecondition,  // google.rpc.PreconditionFailure
  kQuota,         // google.rpc.QuotaFailure
  kRetry,         // google.rpc.RetryInfo with retry_ms
};

struct ReasonInfo {
  std::string_view name;  // UPPER_SNAKE_CASE
  absl::StatusCode code;
  ReasonDetail detail = ReasonDetail::kNone;
  int retry_ms = 0;
};

// Every reason.
std::span<const ReasonInfo> AllReasons();

// The entry of `name`, or, when there is none, that of the reason that stands for `code` alone.
// REQUIRES: `code` is not OK.
const ReasonInfo& FindReason(std::string_view name, absl::StatusCode code);

}  // namespace kvasir::server
