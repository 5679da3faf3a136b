// TermCounts: the terms of one text and how often each occurs; what the lexical index is made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::index {

// Term (analyzer.h) → number of occurrences, at least 1.
using TermCounts = std::map<std::string, uint32_t>;

// Opaque bytes for storage (docs/formats.md, "Postings").
std::string EncodeTermCounts(const TermCounts& counts);
// Errors: DataLoss (not what EncodeTermCounts makes).
base::StatusOr<TermCounts> DecodeTermCounts(std::string_view bytes);

}  // namespace kvasir::index
