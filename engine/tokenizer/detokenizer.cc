#include "engine/tokenizer/detokenizer.h"

#include <utility>

#include "engine/tokenizer/utf8.h"

namespace kvasir::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// Appends the valid text of `bytes` to `out` and returns the incomplete sequence at its end, if
// any.
std::string_view Sanitize(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const Utf8Char c = ReadUtf8(bytes);
    if (c.kind == Utf8Char::Kind::kIncomplete) break;
    out += c.kind == Utf8Char::Kind::kValid ? bytes.substr(0, c.bytes) : kReplacement;
    bytes.remove_prefix(c.bytes);
  }
  return bytes;
}

}  // namespace

std::string Detokenizer::Push(int32_t id) {
  std::string_view bytes = tokenizer_->TokenBytes(id);
  const bool special = tokenizer_->IsSpecial(id);
  if (tokenizer_->adds_space_prefix() && at_start_ && !special && bytes.starts_with(' '))
    bytes.remove_prefix(1);
  at_start_ = special;
  std::string text;
  pending_ += bytes;
  pending_ = std::string(Sanitize(pending_, text));
  return text;
}

std::string Detokenizer::Flush() {
  std::string text(pending_.empty() ? std::string_view() : kReplacement);
  pending_.clear();
  at_start_ = true;
  return text;
}

std::string SanitizeUtf8(std::string_view bytes) {
  std::string text;
  if (!Sanitize(bytes, text).empty()) text += kReplacement;
  return text;
}

}  // namespace kvasir::tokenizer
