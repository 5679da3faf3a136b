#include "engine/kernels/cpu/linear/pack.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/base/check.h"

namespace kvasir::kernels::linear {
namespace {

using gguf::TensorType;

// The integers of one block of 32 k for the 16 columns of a panel.
using Integers = uint8_t[kPanel][kBlock];

uint32_t LoadU32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// 16 bytes of nibbles, element j in the low nibble of byte j, element j + 16 in the high one.
void Nibbles(const uint8_t* bytes, uint8_t* w) {
  for (int j = 0; j < 16; ++j) {
    w[j] = bytes[j] & 15;
    w[j + 16] = bytes[j] >> 4;
  }
}

void FifthBits(uint32_t bits, uint8_t* w) {
  for (int j = 0; j < kBlock; ++j) w[j] |= static_cast<uint8_t>((bits >> j & 1) << 4);
}

// The 32 integers of a block of a type without super-blocks.
void BlockIntegers(TensorType type, const uint8_t* block, uint8_t* w) {
  switch (type) {
    case TensorType::kQ4_0:
      return Nibbles(block + 2, w);
    case TensorType::kQ4_1:
      return Nibbles(block + 4, w);
    case TensorType::kQ5_0:
      Nibbles(block + 6, w);
      return FifthBits(LoadU32(block + 2), w);
    case TensorType::kQ5_1:
      Nibbles(block + 8, w);
      return FifthBits(LoadU32(block + 4), w);
    default:
      std::memcpy(w, block + 2, kBlock);  // Q8_0
  }
}

// The 32 integers of sub-block j of a super-block.
void SubBlockIntegers(TensorType type, const uint8_t* block, int j, uint8_t* w) {
  if (type == TensorType::kQ6_K) {
    const int half = j / 4, group = j % 4;
    const uint8_t* low = block + half * 64 + group % 2 * 32;
    const uint8_t* high = block + 128 + half * 32;
    for (int l = 0; l < kBlock; ++l) {
      w[l] = static_cast<uint8_t>((low[l] >> group / 2 * 4 & 15) | (high[l] >> 2 * group & 3) << 4);
    }
    return;
  }
  const bool five = type == TensorType::kQ5_K;
  const uint8_t* low = block + (five ? 48 : 16) + j / 2 * 32;
  for (int l = 0; l < kBlock; ++l) w[l] = low[l] >> j % 2 * 4 & 15;
  if (!five) return;
  for (int l = 0; l < kBlock; ++l) w[l] |= static_cast<uint8_t>((block[16 + l] >> j & 1) << 4);
}

// The 6-bit scale and minimum of sub-block j of Q4_K and Q5_K from their 12 packed bytes.
void ScaleMin(const uint8_t* packed, int j, int& scale, int& min) {
  if (j < 4) {
    scale = packed[j] & 63;
    min = packed[j + 4] & 63;
  } else {
    scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    min = packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
  }
}

// The scales of one column's super-block into the panel's.
void PackSuperScales(TensorType type, const uint8_t* block, int column, uint8_t* scales) {
  if (type == TensorType::kQ6_K) {
    std::memcpy(scales + 2 * column, block + 208, 2);
    for (int j = 0; j < 16; ++j) scales[32 + j * kPanel + column] = block[192 + j];
    return;
  }
  std::memcpy(scales + 2 * column, block, 2);
  std::memcpy(scales + 32 + 2 * column, block + 2, 2);
  uint8_t* low = scales + 64 + column;
  uint8_t* high = scales + 192 + column;
  for (int j = 0; j < kSuperBlocks; ++j) {
    int scale, min;
    ScaleMin(block + 4, j, scale, min);
    low[j * kPanel] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
    const int top = scale >> 4 | (min >> 4) << 2;
    high[j / 2 * kPanel] |= static_cast<uint8_t>(top << j % 2 * 4);
  }
}

void PackScales(TensorType type, const uint8_t* block, int column, uint8_t* scales) {
  std::memcpy(scales + 2 * column, block, 2);
  if (HasMinimum(FormatOf(type))) std::memcpy(scales + 32 + 2 * column, block + 2, 2);
}

// One block of a panel: to vectors of 4 k × 16 columns, then to the packed width.
void PackIntegers(Format format, const Integers& w, uint8_t* out) {
  uint8_t v[8][64];
  for (int c = 0; c < kPanel; ++c) {
    for (int g = 0; g < 8; ++g) std::memcpy(&v[g][c * 4], &w[c][g * 4], 4);
  }
  if (format == Format::kQ8_0) {
    std::memcpy(out, v, sizeof v);
    return;
  }
  for (int i = 0; i < 4; ++i) {
    for (int p = 0; p < 64; ++p) {
      out[i * 64 + p] = static_cast<uint8_t>((v[i][p] & 15) | v[i + 4][p] << 4);
    }
  }
  uint8_t* bits = out + 256;
  if (HasFifthBit(format)) {
    for (int g = 0; g < 8; ++g) {
      for (int p = 0; p < 64; ++p) bits[p] |= static_cast<uint8_t>((v[g][p] >> 4) << g);
    }
  } else if (format == Format::kQ6_K) {
    for (int g = 0; g < 8; ++g) {
      uint8_t* pairs = bits + g / 4 * 64;
      for (int p = 0; p < 64; ++p) pairs[p] |= static_cast<uint8_t>((v[g][p] >> 4) << g % 4 * 2);
    }
  }
}

void PackFloats(const PanelSource& s, Format format, uint8_t* out) {
  if (format != Format::kF32) {
    for (int c = 0; c < s.columns; ++c) {
      const uint8_t* row = s.rows + c * s.row_bytes;
      for (int64_t k = 0; k < s.k; ++k) std::memcpy(out + (k * kPanel + c) * 2, row + 2 * k, 2);
    }
    return;
  }
  std::vector<float> row(static_cast<size_t>(s.k));
  for (int c = 0; c < s.columns; ++c) {
    gguf::Dequantize(s.type, s.rows + c * s.row_bytes, s.k, row.data());
    for (int64_t k = 0; k < s.k; ++k) {
      std::memcpy(out + (k * kPanel + c) * 4, &row[static_cast<size_t>(k)], 4);
    }
  }
}

void PackSuperBlocks(const PanelSource& s, Format format, uint8_t* quants, uint8_t* scales) {
  const int bytes = gguf::Info(s.type).block_bytes;
  const int64_t super_blocks = s.k / (kBlock * kSuperBlocks);
  for (int64_t b = 0; b < super_blocks; ++b, scales += ScaleBytes(format)) {
    for (int c = 0; c < s.columns; ++c) {
      PackSuperScales(s.type, s.rows + c * s.row_bytes + b * bytes, c, scales);
    }
    for (int j = 0; j < kSuperBlocks; ++j, quants += QuantBytes(format)) {
      Integers w = {};
      for (int c = 0; c < s.columns; ++c) {
        SubBlockIntegers(s.type, s.rows + c * s.row_bytes + b * bytes, j, w[c]);
      }
      PackIntegers(format, w, quants);
    }
  }
}

void PackBlocks(const PanelSource& s, Format format, uint8_t* quants, uint8_t* scales) {
  const int bytes = gguf::Info(s.type).block_bytes;
  for (int64_t b = 0; b < s.k / kBlock; ++b) {
    Integers w = {};
    for (int c = 0; c < s.columns; ++c) {
      const uint8_t* block = s.rows + c * s.row_bytes + b * bytes;
      BlockIntegers(s.type, block, w[c]);
      PackScales(s.type, block, c, scales);
    }
    PackIntegers(format, w, quants);
    quants += QuantBytes(format);
    scales += ScaleBytes(format);
  }
}

}  // namespace

Format FormatOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return Format::kF32;
    case TensorType::kF16:
      return Format::kF16;
    case TensorType::kBF16:
      return Format::kBF16;
    case TensorType::kQ4_0:
      return Format::kQ4_0;
    case TensorType::kQ4_1:
      return Format::kQ4_1;
    case TensorType::kQ5_0:
      return Format::kQ5_0;
    case TensorType::kQ5_1:
      return Format::kQ5_1;
    case TensorType::kQ8_0:
      return Format::kQ8_0;
    case TensorType::kQ4_K:
      return Format::kQ4_K;
    case TensorType::kQ5_K:
      return Format::kQ5_K;
    case TensorType::kQ6_K:
      return Format::kQ6_K;
  }
  KVASIR_CHECK(false);
}

void PackPanel(const PanelSource& source, Format format, uint8_t* quants, uint8_t* scales) {
  if (!IsInteger(format)) return PackFloats(source, format, quants);
  if (HasSuperBlocks(format)) return PackSuperBlocks(source, format, quants, scales);
  PackBlocks(source, format, quants, scales);
}

}  // namespace kvasir::kernels::linear
