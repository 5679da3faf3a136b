#include "engine/tokenizer/vocabulary.h"

#include <string_view>

namespace kvasir::tokenizer {
namespace {

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return std::nullopt;
}

}  // namespace

base::Digest DigestOf(const Vocabulary& v) {
  base::Hasher hasher;
  hasher.AddText("kvasir vocabulary 1");
  hasher.AddInt(static_cast<int64_t>(v.algorithm));
  hasher.AddInt(static_cast<int64_t>(v.pre));
  hasher.AddInt(static_cast<int64_t>(v.texts.size()));
  for (const std::string& text : v.texts) hasher.AddText(text);
  for (const TokenType type : v.types) hasher.AddInt(static_cast<int64_t>(type));
  hasher.AddText({reinterpret_cast<const char*>(v.scores.data()), v.scores.size() * sizeof(float)});
  hasher.AddInt(static_cast<int64_t>(v.merges.size()));
  for (const std::string& merge : v.merges) hasher.AddText(merge);
  for (const auto& id : {v.bos, v.eos, v.eot, v.unknown}) hasher.AddInt(id.value_or(-1));
  hasher.AddInt(v.add_bos);
  hasher.AddInt(v.add_space_prefix);
  return hasher.Finish();
}

std::optional<uint8_t> ParseByteToken(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const std::optional<int> high = HexDigit(text[3]), low = HexDigit(text[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<uint8_t>(*high * 16 + *low);
}

}  // namespace kvasir::tokenizer
