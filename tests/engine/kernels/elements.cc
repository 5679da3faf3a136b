#include "tests/engine/kernels/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/rng.h"
#include "engine/gguf/float16.h"

namespace kvasir::kernels::testing {

float ValueAt(uint64_t stream, int64_t position, int64_t index, float size) {
  const uint64_t point = static_cast<uint64_t>(position) * 1024 + static_cast<uint64_t>(index);
  return static_cast<float>(2 * base::UniformAt(17, stream, point) - 1) * size;
}

std::vector<float> FromElements(KvType type, const std::byte* elements, int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    if (type == KvType::kF32) {
      std::memcpy(&values[i], elements + i * 4, 4);
    } else {
      uint16_t half;
      std::memcpy(&half, elements + i * 2, 2);
      values[i] = gguf::HalfToFloat(half);
    }
  }
  return values;
}

namespace {

// The nearest of all half-precision values, by search: nothing in common with the code under test.
uint16_t NearestHalf(float x) {
  if (std::isnan(x)) return 0x7e00;
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (int h = 0; h < 0x7c00; ++h) all.push_back(gguf::HalfToFloat(static_cast<uint16_t>(h)));
    all.push_back(65536.0);  // where infinity stands for rounding
    return all;
  }();
  const double magnitude = std::fabs(x);
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (magnitude >= values.back()) return sign | 0x7c00;
  const size_t above = std::upper_bound(values.begin(), values.end(), magnitude) - values.begin();
  const double down = magnitude - values[above - 1];
  const double up = values[above] - magnitude;
  const bool take_up = up < down || (up == down && above % 2 == 0);
  return static_cast<uint16_t>(sign | (take_up ? above : above - 1));
}

}  // namespace

std::vector<std::byte> ToElements(KvType type, const std::vector<float>& values) {
  std::vector<std::byte> elements(values.size() * KvBytes(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == KvType::kF32) {
      std::memcpy(elements.data() + i * 4, &values[i], 4);
    } else {
      const uint16_t half = NearestHalf(values[i]);
      std::memcpy(elements.data() + i * 2, &half, 2);
    }
  }
  return elements;
}

}  // namespace kvasir::kernels::testing
