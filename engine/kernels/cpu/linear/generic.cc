// Portable C++: the numeric definition of linear.h written down plainly; the yardstick of the other
// paths.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/gguf/float16.h"
#include "engine/kernels/cpu/linear/kernels.h"

namespace kvasir::kernels::linear {
namespace {

float LoadHalf(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return gguf::HalfToFloat(bits);
}

void QuantizeBlock(const float* x, int count, int8_t* q, QuantizedBlock& block) {
  // As integers, so that infinities and NaN are the largest.
  uint32_t amax_bits = 0;
  for (int i = 0; i < count; ++i) {
    amax_bits = std::max(amax_bits, std::bit_cast<uint32_t>(x[i]) & 0x7fffffff);
  }
  const float amax = std::bit_cast<float>(amax_bits);
  std::memset(q, 0, kBlock);
  block = {};
  if (!std::isfinite(amax)) {
    block.scale = block.scaled_sum = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  if (amax < 0x1p-100f) return;
  const float inverse = 127.0f / amax;
  int pairs[2][2] = {};
  for (int i = 0; i < count; ++i) {
    q[i] = static_cast<int8_t>(std::nearbyint(x[i] * inverse));
    pairs[i / 16][i % 4 / 2] += q[i];
  }
  const int sum = pairs[0][0] + pairs[0][1] + pairs[1][0] + pairs[1][1];
  block.scale = amax / 127.0f;
  block.scaled_sum = block.scale * static_cast<float>(sum);
  block.negative_sum = -sum;
  for (int i = 0; i < 2; ++i) {
    block.negative_pairs[0][i] = static_cast<int16_t>(-pairs[0][i]);
    block.negative_pairs[1][i] = static_cast<int16_t>(-pairs[1][i]);
    block.negative_pairs[2][i] = static_cast<int16_t>(-pairs[0][i] - pairs[1][i]);
  }
}

void QuantizeRow(const float* x, int64_t columns, int8_t* q, QuantizedBlock* blocks) {
  for (int64_t k = 0; k < columns; k += kBlock) {
    QuantizeBlock(x + k, static_cast<int>(std::min<int64_t>(kBlock, columns - k)), q + k,
                  blocks[k / kBlock]);
  }
}

// The integers of one block of a panel, offset taken off.
void Unpack(Format format, const uint8_t* quants, int16_t w[kBlock][kPanel]) {
  const int offset = OffsetLog2(format) == 0 ? 0 : 1 << OffsetLog2(format);
  for (int k = 0; k < kBlock; ++k) {
    const int g = k / 4;
    for (int c = 0; c < kPanel; ++c) {
      const int p = c * 4 + k % 4;
      if (format == Format::kQ8_0) {
        w[k][c] = static_cast<int8_t>(quants[g * 64 + p]);
        continue;
      }
      int v = quants[g % 4 * 64 + p] >> g / 4 * 4 & 15;
      if (HasFifthBit(format)) v |= (quants[256 + p] >> g & 1) << 4;
      if (format == Format::kQ6_K) v |= (quants[256 + g / 4 * 64 + p] >> g % 4 * 2 & 3) << 4;
      w[k][c] = static_cast<int16_t>(v - offset);
    }
  }
}

// The integer scales (one per 16 k) and minimum of block j of a super-block, per column.
struct SubScales {
  int scale[2][kPanel];
  int min[kPanel];
};

void UnpackSubScales(Format format, const uint8_t* scales, int j, SubScales& out) {
  for (int c = 0; c < kPanel; ++c) {
    if (format == Format::kQ6_K) {
      out.scale[0][c] = static_cast<int8_t>(scales[32 + 2 * j * kPanel + c]);
      out.scale[1][c] = static_cast<int8_t>(scales[32 + (2 * j + 1) * kPanel + c]);
      out.min[c] = 0;
      continue;
    }
    const int low = scales[64 + j * kPanel + c];
    const int high = scales[192 + j / 2 * kPanel + c] >> j % 2 * 4 & 15;
    out.scale[0][c] = out.scale[1][c] = (low & 15) | (high & 3) << 4;
    out.min[c] = low >> 4 | (high >> 2) << 4;
  }
}

// Σ w q of both halves of a block, per column.
void Dot(const int16_t w[kBlock][kPanel], const int8_t* q, int32_t sums[2][kPanel]) {
  std::memset(sums, 0, sizeof(int32_t) * 2 * kPanel);
  for (int k = 0; k < kBlock; ++k) {
    for (int c = 0; c < kPanel; ++c) sums[k / 16][c] += w[k][c] * q[k];
  }
}

using Sums = float[kRowsMax][kPanel];

void AddBlocks(const PanelProduct& p, const uint8_t* quants, const uint8_t* scales, Sums& acc) {
  for (int64_t b = 0; b < p.k / kBlock; ++b) {
    int16_t w[kBlock][kPanel];
    Unpack(p.format, quants + b * QuantBytes(p.format), w);
    const uint8_t* d = scales + b * ScaleBytes(p.format);
    for (int r = 0; r < p.rows; ++r) {
      const QuantizedBlock& x = p.blocks[r * (p.k / kBlock) + b];
      int32_t sums[2][kPanel];
      Dot(w, p.q + r * p.q_stride + b * kBlock, sums);
      for (int c = 0; c < kPanel; ++c) {
        const float product = x.scale * static_cast<float>(sums[0][c] + sums[1][c]);
        acc[r][c] = std::fma(LoadHalf(d + 2 * c), product, acc[r][c]);
        if (HasMinimum(p.format)) {
          acc[r][c] = std::fma(LoadHalf(d + 32 + 2 * c), x.scaled_sum, acc[r][c]);
        }
      }
    }
  }
}

void AddSuperBlock(const PanelProduct& p, const uint8_t* quants, const uint8_t* scales,
                   int64_t first_block, Sums& acc) {
  Sums t = {}, u = {};
  for (int j = 0; j < kSuperBlocks; ++j) {
    int16_t w[kBlock][kPanel];
    Unpack(p.format, quants + j * QuantBytes(p.format), w);
    SubScales sub;
    UnpackSubScales(p.format, scales, j, sub);
    for (int r = 0; r < p.rows; ++r) {
      const QuantizedBlock& x = p.blocks[r * (p.k / kBlock) + first_block + j];
      int32_t sums[2][kPanel];
      Dot(w, p.q + r * p.q_stride + (first_block + j) * kBlock, sums);
      for (int c = 0; c < kPanel; ++c) {
        const int32_t sum = sub.scale[0][c] * sums[0][c] + sub.scale[1][c] * sums[1][c];
        t[r][c] = std::fma(x.scale, static_cast<float>(sum), t[r][c]);
        u[r][c] = std::fma(x.scaled_sum, static_cast<float>(sub.min[c]), u[r][c]);
      }
    }
  }
  for (int r = 0; r < p.rows; ++r) {
    for (int c = 0; c < kPanel; ++c) {
      acc[r][c] = std::fma(LoadHalf(scales + 2 * c), t[r][c], acc[r][c]);
      if (HasMinimum(p.format)) {
        acc[r][c] = std::fma(-LoadHalf(scales + 32 + 2 * c), u[r][c], acc[r][c]);
      }
    }
  }
}

float LoadWeight(Format format, const uint8_t* panel, int64_t index) {
  if (format == Format::kF32) {
    float w;
    std::memcpy(&w, panel + 4 * index, sizeof w);
    return w;
  }
  if (format == Format::kF16) return LoadHalf(panel + 2 * index);
  uint16_t bits;
  std::memcpy(&bits, panel + 2 * index, sizeof bits);
  return gguf::Bfloat16ToFloat(bits);
}

void AddFloats(const PanelProduct& p, const uint8_t* panel, Sums& acc) {
  for (int64_t k = 0; k < p.k; ++k) {
    for (int c = 0; c < kPanel; ++c) {
      const float w = LoadWeight(p.format, panel, k * kPanel + c);
      for (int r = 0; r < p.rows; ++r) acc[r][c] = std::fma(w, p.x[r * p.x_stride + k], acc[r][c]);
    }
  }
}

void Store(const PanelProduct& p, int64_t first_column, const Sums& acc) {
  const int64_t columns = std::min<int64_t>(kPanel, p.columns - first_column);
  for (int r = 0; r < p.rows; ++r) {
    float* out = p.out + r * p.out_stride + first_column;
    for (int64_t c = 0; c < columns; ++c) {
      float v = acc[r][c];
      if (p.bias != nullptr) v += p.bias[first_column + c];
      if (p.add) v += out[c];
      out[c] = v;
    }
  }
}

void Multiply(const PanelProduct& p) {
  const uint8_t* quants = p.quants;
  const uint8_t* scales = p.scales;
  for (int64_t column = 0; column < p.columns; column += kPanel) {
    Sums acc = {};
    if (!IsInteger(p.format)) {
      AddFloats(p, quants, acc);
    } else if (HasSuperBlocks(p.format)) {
      for (int64_t b = 0; b < p.k / kBlock; b += kSuperBlocks) {
        AddSuperBlock(p, quants + b * QuantBytes(p.format),
                      scales + b / kSuperBlocks * ScaleBytes(p.format), b, acc);
      }
    } else {
      AddBlocks(p, quants, scales, acc);
    }
    Store(p, column, acc);
    quants += PanelQuantBytes(p.format, p.k);
    scales += PanelScaleBytes(p.format, p.k);
  }
}

}  // namespace

const Kernels kGenericKernels = {QuantizeRow, Multiply};

}  // namespace kvasir::kernels::linear
