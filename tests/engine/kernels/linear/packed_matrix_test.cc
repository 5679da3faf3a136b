// PackedMatrix: size, and which tensors are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kernels/cpu/linear/linear.h"
#include "tests/engine/kernels/linear/cases.h"

namespace kvasir::kernels::linear {
namespace {

using gguf::TensorType;

TEST(PackedMatrix, IsAtMostTwoPercentLargerThanTheFile) {
  base::ThreadPool pool(2);
  for (const TensorType type : IntegerTypes()) {
    for (const int64_t k : {256, 768, 4864}) {
      const TestWeight weight(type, k, 48, 1);
      const auto packed = weight.Pack(Precision::kFast, pool);
      EXPECT_LE(static_cast<double>(packed->bytes()),
                1.02 * static_cast<double>(weight.tensor().data.size()))
          << gguf::Info(type).name << " K " << k;
    }
  }
}

TEST(PackedMatrix, KeepsShapeAndSaysWhatItReads) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ4_0, 64, 17, 1);
  const auto fast = weight.Pack(Precision::kFast, pool);
  EXPECT_EQ(fast->rows(), 17);
  EXPECT_EQ(fast->columns(), 64);
  EXPECT_TRUE(fast->integer());
  EXPECT_FALSE(weight.Pack(Precision::kFloat, pool)->integer());
}

TEST(PackedMatrix, RefusesATensorThatIsNoMatrix) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ4_0, 64, 16, 1);
  gguf::Tensor tensor = weight.tensor();
  tensor.dims = {64, 4, 4};
  const auto packed = PackedMatrix::Pack(tensor, Precision::kFast, pool);
  EXPECT_EQ(packed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(packed.status().message()), testing::HasSubstr("'test.weight'"));
}

TEST(PackedMatrix, RefusesAnExtentAboveTheLimit) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ4_0, 32, 1, 1);
  gguf::Tensor tensor = weight.tensor();
  tensor.dims = {32, (int64_t{1} << 24) + 1};
  EXPECT_EQ(PackedMatrix::Pack(tensor, Precision::kFast, pool).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(PackedMatrix, RefusesDataShorterThanItsShape) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ6_K, 256, 2, 1);
  gguf::Tensor tensor = weight.tensor();
  tensor.data = tensor.data.first(tensor.data.size() - 1);
  EXPECT_EQ(PackedMatrix::Pack(tensor, Precision::kFast, pool).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PackedMatrix, RefusesColumnsThatAreNoWholeBlocks) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ8_0, 64, 16, 1);
  gguf::Tensor tensor = weight.tensor();
  tensor.dims = {48, 16};
  EXPECT_EQ(PackedMatrix::Pack(tensor, Precision::kFast, pool).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AlignedBytes, AreZeroAndOnCacheLinesAtEverySize) {
  for (const size_t size : {size_t{1}, size_t{64}, size_t{4097}, (size_t{2} << 20) + 5}) {
    const AlignedBytes bytes(size);
    ASSERT_NE(bytes.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 64, 0u);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(bytes.data()[i], 0);
  }
}

}  // namespace
}  // namespace kvasir::kernels::linear
