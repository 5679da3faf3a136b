// Quote: text from an untrusted file, made fit for an error message.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::gguf {

// `text` in single quotes: bytes outside printable ASCII, quotes and backslashes as \xNN, at most
// 64 bytes of it followed by "..." when there are more.
std::string Quote(std::string_view text);

}  // namespace kvasir::gguf
