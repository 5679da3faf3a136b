// ValidateRequest: the checks that need the request alone. First thing that every handler does.
//
// Checked: every number is in its range (NaN and infinity never are), every text is UTF-8 without
// NUL and within its length, lists are within their count, enums hold a value of this version,
// fields that the server sets are unset. Not checked: that names parse (resource_names.h) and rules
// between two fields.
#pragma once

#include <google/protobuf/message.h>

#include "engine/base/status.h"

namespace kvasir::server {

// Errors: InvalidArgument (INVALID_FIELD; names the field as a path, "session.display_name",
// "stop[3]", with the value and the range).
base::Status ValidateRequest(const google::protobuf::Message& request);

}  // namespace kvasir::server
