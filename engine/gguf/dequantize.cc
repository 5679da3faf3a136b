// Block layouts: a block is its scales (float16 unless noted) followed by packed integers; every
// formula below is the one the format defines, one rounding per written operation.
#include <bit>
#include <cstring>

#include "engine/base/check.h"
#include "engine/gguf/float16.h"
#include "engine/gguf/types.h"

namespace kvasir::gguf {
namespace {

uint16_t LoadU16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

uint32_t LoadU32(const uint8_t* p) {
  return LoadU16(p) | static_cast<uint32_t>(LoadU16(p + 2)) << 16;
}

float LoadHalf(const uint8_t* p) { return HalfToFloat(LoadU16(p)); }

void F32(const uint8_t* b, float* y) { *y = std::bit_cast<float>(LoadU32(b)); }
void F16(const uint8_t* b, float* y) { *y = LoadHalf(b); }
void BF16(const uint8_t* b, float* y) { *y = Bfloat16ToFloat(LoadU16(b)); }

// d, 16 bytes: element j in the low nibble of byte j, element j + 16 in the high one; offset 8.
void Q4_0(const uint8_t* b, float* y) {
  const float d = LoadHalf(b);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>((b[2 + j] & 15) - 8) * d;
    y[j + 16] = static_cast<float>((b[2 + j] >> 4) - 8) * d;
  }
}

// d, m, 16 bytes as in Q4_0; no offset, plus m.
void Q4_1(const uint8_t* b, float* y) {
  const float d = LoadHalf(b);
  const float m = LoadHalf(b + 2);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(b[4 + j] & 15) * d + m;
    y[j + 16] = static_cast<float>(b[4 + j] >> 4) * d + m;
  }
}

// The 5-bit integer of element j: nibble as in Q4_0 from `quants`, fifth bit is bit j of `high`.
int FiveBits(const uint8_t* quants, uint32_t high, int j) {
  const int low = j < 16 ? quants[j] & 15 : quants[j - 16] >> 4;
  return low | static_cast<int>(high >> j & 1) << 4;
}

// d, 4 bytes of fifth bits, 16 bytes; offset 16.
void Q5_0(const uint8_t* b, float* y) {
  const float d = LoadHalf(b);
  const uint32_t high = LoadU32(b + 2);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(FiveBits(b + 6, high, j) - 16) * d;
}

// d, m, 4 bytes of fifth bits, 16 bytes; no offset, plus m.
void Q5_1(const uint8_t* b, float* y) {
  const float d = LoadHalf(b);
  const float m = LoadHalf(b + 2);
  const uint32_t high = LoadU32(b + 4);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(FiveBits(b + 8, high, j)) * d + m;
}

// d, 32 signed bytes.
void Q8_0(const uint8_t* b, float* y) {
  const float d = LoadHalf(b);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(static_cast<int8_t>(b[2 + j])) * d;
}

struct ScaleMin {
  float scale;
  float min;
};

// The scale and minimum of sub-block j (of 8, 32 elements each) of Q4_K and Q5_K: 6-bit integers
// packed into 12 bytes. Those of sub-blocks 0–3 are the low 6 bits of bytes j and j + 4; those of
// 4–7 have their low 4 bits in byte j + 4 and their high 2 bits on top of bytes j − 4 and j.
ScaleMin KScaleMin(const uint8_t* b, int j) {
  const float d = LoadHalf(b);
  const float dmin = LoadHalf(b + 2);
  const uint8_t* p = b + 4;
  int scale = p[j] & 63;
  int min = p[j + 4] & 63;
  if (j >= 4) {
    scale = (p[j + 4] & 15) | (p[j - 4] >> 6) << 4;
    min = (p[j + 4] >> 4) | (p[j] >> 6) << 4;
  }
  return {d * static_cast<float>(scale), dmin * static_cast<float>(min)};
}

// d, dmin, 12 bytes of scales, 128 bytes: 32 bytes hold sub-block 2i in low and 2i + 1 in high
// nibbles.
void Q4_K(const uint8_t* b, float* y) {
  for (int j = 0; j < 8; ++j, y += 32) {
    const auto [scale, min] = KScaleMin(b, j);
    const uint8_t* quants = b + 16 + j / 2 * 32;
    const int shift = j % 2 * 4;
    for (int l = 0; l < 32; ++l) y[l] = scale * static_cast<float>(quants[l] >> shift & 15) - min;
  }
}

// As Q4_K with 32 bytes before the nibbles: bit j of byte l is the fifth bit of element l of
// sub-block j.
void Q5_K(const uint8_t* b, float* y) {
  for (int j = 0; j < 8; ++j, y += 32) {
    const auto [scale, min] = KScaleMin(b, j);
    const uint8_t* high = b + 16;
    const uint8_t* quants = b + 48 + j / 2 * 32;
    const int shift = j % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      const int q = (quants[l] >> shift & 15) | (high[l] >> j & 1) << 4;
      y[l] = scale * static_cast<float>(q) - min;
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales (16 elements each), d;
// offset 32. In each half of 128 elements, group g of 32 has its nibbles in bytes 32 · (g mod 2) …,
// low for g < 2, and its pairs at bit 2g.
void Q6_K(const uint8_t* b, float* y) {
  const float d = LoadHalf(b + 208);
  for (int half = 0; half < 2; ++half) {
    for (int g = 0; g < 4; ++g, y += 32) {
      const uint8_t* low = b + half * 64 + g % 2 * 32;
      const uint8_t* high = b + 128 + half * 32;
      const uint8_t* scales = b + 192 + half * 8 + g * 2;
      for (int l = 0; l < 32; ++l) {
        const int q = ((low[l] >> g / 2 * 4 & 15) | (high[l] >> 2 * g & 3) << 4) - 32;
        y[l] = d * static_cast<float>(static_cast<int8_t>(scales[l / 16])) * static_cast<float>(q);
      }
    }
  }
}

using BlockFunction = void (*)(const uint8_t*, float*);

BlockFunction FunctionFor(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return F32;
    case TensorType::kF16:
      return F16;
    case TensorType::kBF16:
      return BF16;
    case TensorType::kQ4_0:
      return Q4_0;
    case TensorType::kQ4_1:
      return Q4_1;
    case TensorType::kQ5_0:
      return Q5_0;
    case TensorType::kQ5_1:
      return Q5_1;
    case TensorType::kQ8_0:
      return Q8_0;
    case TensorType::kQ4_K:
      return Q4_K;
    case TensorType::kQ5_K:
      return Q5_K;
    case TensorType::kQ6_K:
      return Q6_K;
  }
  return nullptr;
}

}  // namespace

void Dequantize(TensorType type, const uint8_t* blocks, int64_t elements, float* out) {
  const TypeInfo& info = Info(type);
  KVASIR_CHECK(elements >= 0 && elements % info.block_elements == 0);
  const BlockFunction function = FunctionFor(type);
  KVASIR_CHECK(function != nullptr);
  for (int64_t i = 0; i < elements; i += info.block_elements) {
    function(blocks, out + i);
    blocks += info.block_bytes;
  }
}

}  // namespace kvasir::gguf
