// UTF-8 as requests must have it (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::server {

// Offset of the first byte that is not part of a whole character, or text.size() when all are.
size_t ValidUtf8Prefix(std::string_view text);

// `text` with each byte that is not part of a whole character replaced by '?'.
std::string ReplaceInvalidUtf8(std::string_view text);

// The longest prefix of whole characters with at most `bytes_max` bytes. REQUIRES: valid UTF-8.
std::string CutUtf8(std::string text, size_t bytes_max);

}  // namespace kvasir::server
