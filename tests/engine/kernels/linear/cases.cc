#include "tests/engine/kernels/linear/cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "engine/gguf/float16.h"

namespace kvasir::kernels::linear {

#if defined(__x86_64__)
extern const Kernels kEmulatedAvx512VnniKernels;
#endif

namespace {

using gguf::TensorType;

// Halves from −2^-6 to 2^-6, most of them large.
uint16_t RandomHalf(uint32_t bits) {
  const uint32_t exponent = 15 - 12 + bits % 6;
  return static_cast<uint16_t>((bits >> 8 & 0x8000) | exponent << 10 | (bits >> 12 & 0x3ff));
}

// Offsets of the half floats in a block; −1 for none.
struct HalfOffsets {
  int d, m;
};
HalfOffsets HalvesOf(TensorType type) {
  switch (type) {
    case TensorType::kQ6_K:
      return {208, -1};
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    case TensorType::kF32:
      return {-1, -1};
    default:
      return {0, -1};
  }
}

void StoreHalf(uint8_t* block, int offset, uint16_t half) {
  if (offset >= 0) std::memcpy(block + offset, &half, sizeof half);
}

double Uniform(uint64_t seed, uint64_t stream, uint64_t i) {
  return base::UniformAt(seed, stream, i);
}

}  // namespace

TestWeight::TestWeight(TensorType type, int64_t k, int64_t n, uint64_t seed, Fill fill) {
  const gguf::TypeInfo& info = gguf::Info(type);
  KVASIR_CHECK(k % info.block_elements == 0);
  const int64_t blocks = k / info.block_elements * n;
  data_.resize(static_cast<size_t>(blocks * info.block_bytes));
  base::SeededEntropy entropy(seed);
  if (fill == Fill::kRandom) entropy.Fill(data_);
  if (fill == Fill::kOnes) std::fill(data_.begin(), data_.end(), uint8_t{0xff});
  if (fill == Fill::kHighBits) std::fill(data_.begin(), data_.end(), uint8_t{0x80});
  const HalfOffsets halves = HalvesOf(type);
  for (int64_t b = 0; b < blocks; ++b) {
    uint8_t* block = data_.data() + b * info.block_bytes;
    const auto words = base::Philox(seed, {static_cast<uint32_t>(b), 0, 0, 1});
    StoreHalf(block, halves.d, RandomHalf(words[0]));
    StoreHalf(block, halves.m, RandomHalf(words[1]));
    if (type == TensorType::kF32) {
      const float v = static_cast<float>(static_cast<int32_t>(words[0])) * 0x1p-31f;
      std::memcpy(block, &v, sizeof v);
    } else if (type == TensorType::kBF16) {
      const uint16_t v = static_cast<uint16_t>((words[0] & 0x80ff) | 0x3f00);
      std::memcpy(block, &v, sizeof v);
    }
  }
  tensor_.name = "test.weight";
  tensor_.type = type;
  tensor_.dims = {k, n};
  tensor_.data = data_;
}

std::vector<float> TestWeight::Dequantized() const {
  std::vector<float> out(static_cast<size_t>(tensor_.elements()));
  gguf::Dequantize(tensor_.type, data_.data(), tensor_.elements(), out.data());
  return out;
}

double TestWeight::TermMax() const {
  switch (tensor_.type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return 1.0;
    case TensorType::kQ4_K:
      return 0x1p-6 * (15 * 63 + 63);
    case TensorType::kQ5_K:
      return 0x1p-6 * (31 * 63 + 63);
    case TensorType::kQ6_K:
      return 0x1p-6 * 32 * 128;
    case TensorType::kQ8_0:
      return 0x1p-6 * 128;
    default:
      return 0x1p-6 * 32;
  }
}

std::unique_ptr<PackedMatrix> TestWeight::Pack(Precision precision, base::ThreadPool& pool) const {
  auto matrix = PackedMatrix::Pack(tensor_, precision, pool);
  KVASIR_CHECK(matrix.ok());
  return std::move(matrix).value();
}

std::vector<NamedKernels> VectorKernels() {
  std::vector<NamedKernels> all;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    all.push_back({"avx2", &kAvx2Kernels});
    all.push_back({"avx512_vnni emulated", &kEmulatedAvx512VnniKernels});
  }
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    all.push_back({"avx512_vnni", &kAvx512VnniKernels});
  }
#endif
  return all;
}

std::vector<float> TestInputs(int64_t rows, int64_t k, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(rows * k));
  for (size_t i = 0; i < x.size(); ++i) {
    const uint64_t block = i / kBlock;
    const double kind = Uniform(seed, 1, block);
    double v = Uniform(seed, 0, i) * 2 - 1;
    if (kind < 0.05)
      v = 0;
    else if (kind < 0.15)
      v = std::fabs(v) * 0.1 + 0.9;
    else if (kind < 0.20)
      v = 1;
    else if (kind < 0.25)
      v *= 1e4;
    else if (kind < 0.30)
      v *= 1e-30;
    x[i] = static_cast<float>(v);
  }
  return x;
}

const std::vector<TensorType>& IntegerTypes() {
  static const std::vector<TensorType> types = {
      TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
      TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};
  return types;
}

const std::vector<TensorType>& FloatTypes() {
  static const std::vector<TensorType> types = {TensorType::kF32, TensorType::kF16,
                                                TensorType::kBF16};
  return types;
}

bool HasSuperBlocks(TensorType type) { return gguf::Info(type).block_elements == 256; }

QuantizedRows Quantize(const Kernels& kernels, const std::vector<float>& x, int64_t k) {
  const int64_t rows = static_cast<int64_t>(x.size()) / k;
  QuantizedRows q(rows, k);
  for (int64_t r = 0; r < rows; ++r) QuantizeRow(kernels, x.data() + r * k, r, q);
  return q;
}

std::vector<float> Product(const Kernels& kernels, base::ThreadPool& pool,
                           const PackedMatrix& weight, const std::vector<float>& x, int64_t rows) {
  const int64_t k = weight.columns();
  const QuantizedRows q = Quantize(kernels, x, k);
  std::vector<float> out(static_cast<size_t>(rows * weight.rows()), -1.0f);
  const LinearTask task = {.weight = &weight, .out = out.data(), .out_stride = weight.rows()};
  MultiplyRows(kernels, pool, rows, x.data(), k, &q, {&task, 1});
  return out;
}

}  // namespace kvasir::kernels::linear
