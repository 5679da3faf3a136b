// Block layouts: engine/gguf/dequantize.cc.
#include "tests/support/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "engine/base/check.h"
#include "engine/gguf/float16.h"

namespace kvasir::testing {
namespace {

using gguf::TensorType;

// The smallest binary16 number ≥ value, for a value in [0, 65504]: levels reach the largest
// element.
uint16_t HalfAtLeast(float value) {
  uint16_t low = 0, high = 0x7bff;
  while (low < high) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    if (gguf::HalfToFloat(middle) >= value) {
      high = middle;
    } else {
      low = static_cast<uint16_t>(middle + 1);
    }
  }
  return low;
}

// The binary16 number for −bound ≤ a minimum: the sign bit and HalfAtLeast of its magnitude.
uint16_t HalfAtMost(float value) {
  return value < 0 ? static_cast<uint16_t>(HalfAtLeast(-value) | 0x8000) : uint16_t{0};
}

void PutHalf(uint8_t* out, uint16_t half) { std::memcpy(out, &half, sizeof(half)); }

int Level(float value, float step, int min, int max) {
  if (step == 0) return std::clamp(0, min, max);
  return std::clamp(static_cast<int>(std::lround(value / step)), min, max);
}

float MaxMagnitude(std::span<const float> x) {
  float max = 0;
  for (const float v : x) max = std::max(max, std::fabs(v));
  return max;
}

void F32(std::span<const float> x, uint8_t* out) { std::memcpy(out, x.data(), sizeof(float)); }

void Q8_0(std::span<const float> x, uint8_t* out) {
  const uint16_t half = HalfAtLeast(MaxMagnitude(x) / 127.0f);
  PutHalf(out, half);
  for (int j = 0; j < 32; ++j) {
    out[2 + j] = static_cast<uint8_t>(Level(x[j], gguf::HalfToFloat(half), -127, 127));
  }
}

void Q4_1(std::span<const float> x, uint8_t* out) {
  const uint16_t min_half = HalfAtMost(*std::min_element(x.begin(), x.end()));
  const float min = gguf::HalfToFloat(min_half);
  const uint16_t half = HalfAtLeast((*std::max_element(x.begin(), x.end()) - min) / 15.0f);
  const float step = gguf::HalfToFloat(half);
  PutHalf(out, half);
  PutHalf(out + 2, min_half);
  for (int j = 0; j < 16; ++j) {
    out[4 + j] = static_cast<uint8_t>(Level(x[j] - min, step, 0, 15) |
                                      Level(x[j + 16] - min, step, 0, 15) << 4);
  }
}

void Q5_0(std::span<const float> x, uint8_t* out) {
  const uint16_t half = HalfAtLeast(MaxMagnitude(x) / 15.0f);
  PutHalf(out, half);
  uint32_t high = 0;
  for (int j = 0; j < 32; ++j) {
    const uint32_t level =
        static_cast<uint32_t>(Level(x[j], gguf::HalfToFloat(half), -16, 15) + 16);
    high |= (level >> 4) << j;
    out[6 + j % 16] |= static_cast<uint8_t>((level & 15) << (j < 16 ? 0 : 4));
  }
  std::memcpy(out + 2, &high, sizeof(high));
}

// Scales and minima of the eight sub-blocks as 6-bit integers in 12 bytes.
void PutKScales(const int* scales, const int* mins, uint8_t* out) {
  for (int j = 0; j < 4; ++j) {
    out[j] = static_cast<uint8_t>(scales[j] | (scales[j + 4] >> 4) << 6);
    out[j + 4] = static_cast<uint8_t>(mins[j] | (mins[j + 4] >> 4) << 6);
    out[j + 8] = static_cast<uint8_t>((scales[j + 4] & 15) | (mins[j + 4] & 15) << 4);
  }
}

void Q4_K(std::span<const float> x, uint8_t* out) {
  float steps[8], minima[8];
  for (int j = 0; j < 8; ++j) {
    const auto part = x.subspan(j * 32, 32);
    minima[j] = std::max(0.0f, -*std::min_element(part.begin(), part.end()));
    steps[j] = (*std::max_element(part.begin(), part.end()) + minima[j]) / 15.0f;
  }
  const uint16_t d = HalfAtLeast(*std::max_element(steps, steps + 8) / 63.0f);
  const uint16_t dmin = HalfAtLeast(*std::max_element(minima, minima + 8) / 63.0f);
  PutHalf(out, d);
  PutHalf(out + 2, dmin);
  int scales[8], mins[8];
  for (int j = 0; j < 8; ++j) {
    const float d_value = gguf::HalfToFloat(d), dmin_value = gguf::HalfToFloat(dmin);
    scales[j] = d_value == 0 ? 0 : std::min(63, static_cast<int>(std::ceil(steps[j] / d_value)));
    mins[j] =
        dmin_value == 0 ? 0 : std::min(63, static_cast<int>(std::ceil(minima[j] / dmin_value)));
    const float step = d_value * static_cast<float>(scales[j]);
    const float min = dmin_value * static_cast<float>(mins[j]);
    for (int l = 0; l < 32; ++l) {
      const int level = Level(x[j * 32 + l] + min, step, 0, 15);
      out[16 + j / 2 * 32 + l] |= static_cast<uint8_t>(level << (j % 2 * 4));
    }
  }
  PutKScales(scales, mins, out + 4);
}

void Q6_K(std::span<const float> x, uint8_t* out) {
  float steps[16];
  for (int j = 0; j < 16; ++j) steps[j] = MaxMagnitude(x.subspan(j * 16, 16)) / 31.0f;
  const uint16_t d = HalfAtLeast(*std::max_element(steps, steps + 16) / 127.0f);
  const float d_value = gguf::HalfToFloat(d);
  PutHalf(out + 208, d);
  for (int j = 0; j < 16; ++j) {
    const int scale =
        d_value == 0 ? 0 : std::min(127, static_cast<int>(std::ceil(steps[j] / d_value)));
    out[192 + j] = static_cast<uint8_t>(scale);
    for (int i = j * 16; i < j * 16 + 16; ++i) {
      const int level = Level(x[i], d_value * static_cast<float>(scale), -32, 31) + 32;
      const int half = i / 128, group = i / 32 % 4, l = i % 32;
      out[half * 64 + group % 2 * 32 + l] |= static_cast<uint8_t>((level & 15) << (group / 2 * 4));
      out[128 + half * 32 + l] |= static_cast<uint8_t>((level >> 4) << (2 * group));
    }
  }
}

}  // namespace

std::string Quantize(TensorType type, std::span<const float> values) {
  void (*block)(std::span<const float>, uint8_t*) = nullptr;
  if (type == TensorType::kF32) block = F32;
  if (type == TensorType::kQ8_0) block = Q8_0;
  if (type == TensorType::kQ4_1) block = Q4_1;
  if (type == TensorType::kQ5_0) block = Q5_0;
  if (type == TensorType::kQ4_K) block = Q4_K;
  if (type == TensorType::kQ6_K) block = Q6_K;
  KVASIR_CHECK(block != nullptr);
  const gguf::TypeInfo& info = gguf::Info(type);
  KVASIR_CHECK(values.size() % info.block_elements == 0);
  const size_t blocks = values.size() / info.block_elements;
  std::string out(blocks * info.block_bytes, '\0');
  for (size_t i = 0; i < blocks; ++i) {
    block(values.subspan(i * info.block_elements, info.block_elements),
          reinterpret_cast<uint8_t*>(out.data()) + i * info.block_bytes);
  }
  return out;
}

}  // namespace kvasir::testing
