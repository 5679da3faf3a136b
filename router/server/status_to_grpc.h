// base::Status -> grpc::Status with a google.rpc.Status in the trailing details.
//
// The details hold one ErrorInfo (domain "kvasir") and, where it fits, BadRequest, QuotaFailure,
// RetryInfo or PreconditionFailure (reasons.h). Code and reason always belong together; a status
// without a known reason gets the one that stands for its code.
#pragma once

#include <grpcpp/support/status.h>

#include "engine/base/status.h"
#include "google/rpc/status.pb.h"

namespace kvasir::server {

inline constexpr char kErrorDomain[] = "kvasir";
// Bytes of a message; a longer one is cut at a character. Message, field and details together stay
// below the 8 KiB that a client accepts as metadata.
inline constexpr int kMessageBytesMax = 1024;

// The status as a message. Bytes that are no UTF-8 become '?'. OK gives code 0 without details.
google::rpc::Status ToRpcStatus(const base::Status& status);

// What a handler returns. OK gives grpc::Status::OK.
grpc::Status ToGrpc(const base::Status& status);

}  // namespace kvasir::server
