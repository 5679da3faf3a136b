// Weights, inputs and kernels for tests of matrix products.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/gguf/file.h"
#include "engine/kernels/cpu/linear/multiply.h"

namespace kvasir::kernels::linear {

// How the bytes of a weight's blocks are chosen; scales (half floats) are always finite.
enum class Fill { kRandom, kZeros, kOnes, kHighBits };  // random, 0x00, 0xff, 0x80

// A weight in the file format, with its storage.
class TestWeight {
 public:
  TestWeight(gguf::TensorType type, int64_t k, int64_t n, uint64_t seed, Fill fill = Fill::kRandom);

  const gguf::Tensor& tensor() const { return tensor_; }
  // Row-major [n, k].
  std::vector<float> Dequantized() const;
  // The largest |term| that a product's sum may hold per unit of |x|: |d · w| + |m| over all
  // scales.
  double TermMax() const;
  std::unique_ptr<PackedMatrix> Pack(Precision precision, base::ThreadPool& pool) const;

 private:
  std::vector<uint8_t> data_;
  gguf::Tensor tensor_;
};

// Kernels under test and their name.
struct NamedKernels {
  std::string name;
  const Kernels* kernels;
};

// Those this CPU can run beside the generic ones; AVX-512 also emulated (SIMDe).
std::vector<NamedKernels> VectorKernels();

// Inputs [rows, k]: normal numbers with some blocks of zeros, of one sign, of 1e4 and of 1e-30.
std::vector<float> TestInputs(int64_t rows, int64_t k, uint64_t seed);

const std::vector<gguf::TensorType>& IntegerTypes();
const std::vector<gguf::TensorType>& FloatTypes();
bool HasSuperBlocks(gguf::TensorType type);

// Rows of activations of `x` [rows, k].
QuantizedRows Quantize(const Kernels& kernels, const std::vector<float>& x, int64_t k);

// [rows, n] = x · weightᵀ. `rows` from the start of x.
std::vector<float> Product(const Kernels& kernels, base::ThreadPool& pool,
                           const PackedMatrix& weight, const std::vector<float>& x, int64_t rows);

}  // namespace kvasir::kernels::linear
