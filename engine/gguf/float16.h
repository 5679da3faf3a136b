// The 16-bit floating-point formats of GGUF, widened exactly.
#pragma once

#include <bit>
#include <cstdint>

namespace kvasir::gguf {

// The value of the IEEE 754 binary16 number with these bits; a NaN keeps its payload.
inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t widened = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

// The value of the bfloat16 number with these bits: the upper half of a binary32.
inline float Bfloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace kvasir::gguf
