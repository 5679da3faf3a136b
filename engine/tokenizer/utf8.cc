#include "engine/tokenizer/utf8.h"

#include <cstdint>

namespace kvasir::tokenizer {
namespace {

struct Lead {
  size_t bytes = 0;    // of the whole sequence; 0: no lead byte
  uint8_t low = 0x80;  // range of the second byte
  uint8_t high = 0xBF;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Char ReadUtf8(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Lead lead = LeadOf(byte_at(0));
  if (lead.bytes == 0) return {};
  if (lead.bytes == 1) return {Utf8Char::Kind::kValid, byte_at(0), 1};
  char32_t value = byte_at(0) & (0x7Fu >> lead.bytes);
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8Char::Kind::kIncomplete, 0, i};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte_at(i) < low || byte_at(i) > high) return {Utf8Char::Kind::kIllFormed, 0, i};
    value = value << 6 | (byte_at(i) & 0x3Fu);
  }
  return {Utf8Char::Kind::kValid, value, lead.bytes};
}

}  // namespace kvasir::tokenizer
