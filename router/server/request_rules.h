// Rules for the fields of requests: the ranges that proto/kvasir/v1 states, as a table.
//
// Every number in a request has a rule; a string without one may hold kNameBytesMax bytes, which is
// enough for a resource name or a page token. A test walks all requests and compares.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvasir::server {

inline constexpr int64_t kNameBytesMax = 1024;

enum class RuleKind {
  kRange,      // number in [min, max]
  kRangeOpen,  // number in (min, max]
  kBytes,      // text of min to max bytes
  kRequestId,  // empty, or min to max printable ASCII characters without space
  kList,       // at most max entries; each is text of 1 to entry_bytes_max bytes
  kDuration,   // google.protobuf.Duration of min to max seconds
  kUnset,      // set by the server only
};

struct FieldRule {
  std::string_view field;  // "ChatRequest.top_k", without the package
  RuleKind kind;
  double min = 0;
  double max = 0;
  int64_t entry_bytes_max = 0;
};

// The rule of a field of kvasir.v1, or null.
const FieldRule* FindRule(std::string_view field);

}  // namespace kvasir::server
