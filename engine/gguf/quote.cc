#include "engine/gguf/quote.h"

#include <fmt/format.h>

#include <cstdint>

namespace kvasir::gguf {

std::string Quote(std::string_view text) {
  constexpr size_t kShownMax = 64;
  std::string quoted = "'";
  for (const char c : text.substr(0, kShownMax)) {
    if (c < ' ' || c > '~' || c == '\'' || c == '\\') {
      quoted += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    } else {
      quoted += c;
    }
  }
  quoted += text.size() > kShownMax ? "...'" : "'";
  return quoted;
}

}  // namespace kvasir::gguf
