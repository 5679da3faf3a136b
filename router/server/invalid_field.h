// InvalidField: the status of a request field that breaks its rule.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/base/status.h"

namespace kvasir::server {

// InvalidArgument "FIELD: text" with the reason INVALID_FIELD and the field attached.
template <typename... Args>
base::Status InvalidField(std::string_view field, fmt::format_string<Args...> format,
                          Args&&... args) {
  return base::WithField(
      base::WithReason(
          base::InvalidArgument("{}: {}", field, fmt::format(format, std::forward<Args>(args)...)),
          "INVALID_FIELD"),
      field);
}

}  // namespace kvasir::server
