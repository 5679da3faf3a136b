// WithNextStep: what the server says, with what the user of kvasir can do about it.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace kvasir::client {

// `status` of a call about the resource `asked`, a full name or "" where the call is about none: a
// missing resource is named together with the command that lists those there are, a closed session
// with how to begin another. Code, reason and field are kept.
base::Status WithNextStep(const base::Status& status, const std::string& asked);

}  // namespace kvasir::client
