#include "router/server/reasons.h"

#include <algorithm>

namespace kvasir::server {
namespace {

using absl::StatusCode;

constexpr ReasonInfo kReasons[] = {
    {"CONTEXT_LENGTH_EXCEEDED", StatusCode::kFailedPrecondition, ReasonDetail::kPrecondition},
    {"DEADLINE_EXCEEDED", StatusCode::kDeadlineExceeded},
    {"ERASURE_IN_PROGRESS", StatusCode::kFailedPrecondition, ReasonDetail::kPrecondition},
    {"INTERNAL", StatusCode::kInternal},
    {"INVALID_FIELD", StatusCode::kInvalidArgument, ReasonDetail::kBadRequest},
    {"LIMIT_REACHED", StatusCode::kResourceExhausted, ReasonDetail::kQuota},
    {"MEMORY_QUOTA_EXCEEDED", StatusCode::kResourceExhausted, ReasonDetail::kQuota},
    {"MODEL_MISMATCH", StatusCode::kFailedPrecondition, ReasonDetail::kPrecondition},
    {"PAGE_TOKEN_MISMATCH", StatusCode::kInvalidArgument, ReasonDetail::kBadRequest},
    {"PRECONDITION_FAILED", StatusCode::kFailedPrecondition, ReasonDetail::kPrecondition},
    {"QUEUE_FULL", StatusCode::kResourceExhausted, ReasonDetail::kRetry, 1000},
    {"REQUEST_ABORTED", StatusCode::kAborted, ReasonDetail::kRetry, 100},
    {"REQUEST_CANCELLED", StatusCode::kCancelled},
    {"REQUEST_ID_REUSED", StatusCode::kAlreadyExists, ReasonDetail::kBadRequest},
    {"RESOURCE_EXISTS", StatusCode::kAlreadyExists},
    {"RESOURCE_NOT_FOUND", StatusCode::kNotFound},
    {"SCOPE_DENIED", StatusCode::kPermissionDenied},
    {"SERVER_DRAINING", StatusCode::kUnavailable, ReasonDetail::kRetry, 1000},
    {"SERVER_LOADING", StatusCode::kUnavailable, ReasonDetail::kRetry, 1000},
    {"SESSION_BUSY", StatusCode::kAborted, ReasonDetail::kRetry, 500},
    {"SESSION_CLOSED", StatusCode::kFailedPrecondition, ReasonDetail::kPrecondition},
    {"STATE_CORRUPT", StatusCode::kDataLoss},
    {"STORE_UNAVAILABLE", StatusCode::kUnavailable, ReasonDetail::kRetry, 1000},
    {"UNAUTHENTICATED", StatusCode::kUnauthenticated},
};

// What a status without a known reason is called.
constexpr std::string_view NameOfCode(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled:
      return "REQUEST_CANCELLED";
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return "INVALID_FIELD";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "RESOURCE_NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "RESOURCE_EXISTS";
    case StatusCode::kPermissionDenied:
      return "SCOPE_DENIED";
    case StatusCode::kResourceExhausted:
      return "LIMIT_REACHED";
    case StatusCode::kFailedPrecondition:
      return "PRECONDITION_FAILED";
    case StatusCode::kAborted:
      return "REQUEST_ABORTED";
    case StatusCode::kUnavailable:
      return "STORE_UNAVAILABLE";
    case StatusCode::kDataLoss:
      return "STATE_CORRUPT";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
    default:
      return "INTERNAL";
  }
}

const ReasonInfo* FindReason(std::string_view name) {
  const auto* found = std::ranges::find(kReasons, name, &ReasonInfo::name);
  return found == std::end(kReasons) ? nullptr : found;
}

}  // namespace

std::span<const ReasonInfo> AllReasons() { return kReasons; }

const ReasonInfo& FindReason(std::string_view name, absl::StatusCode code) {
  const ReasonInfo* known = FindReason(name);
  return known != nullptr ? *known : *FindReason(NameOfCode(code));
}

}  // namespace kvasir::server
