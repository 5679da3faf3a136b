// Every path gives the bits of the generic one, for every number of rows. Expected values are
// generic products of single rows, so that equality also shows that a row's result does not depend
// on the rows beside it.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/engine/kernels/linear/cases.h"

namespace kvasir::kernels::linear {
namespace {

using gguf::TensorType;

constexpr int64_t kRowCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 65};
constexpr int64_t kColumnCounts[] = {1, 15, 16, 17, 192};

// Row-alone generic products of all rows of x.
std::vector<float> Expected(base::ThreadPool& pool, const PackedMatrix& w,
                            const std::vector<float>& x) {
  const size_t k = static_cast<size_t>(w.columns());
  std::vector<float> all;
  for (size_t r = 0; r < x.size() / k; ++r) {
    const std::vector<float> row(x.begin() + static_cast<int64_t>(r * k),
                                 x.begin() + static_cast<int64_t>((r + 1) * k));
    const std::vector<float> out = Product(kGenericKernels, pool, w, row, 1);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

testing::AssertionResult SameBits(const std::vector<float>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(float)) != 0) {
      return testing::AssertionFailure()
             << "element " << i << ": " << got[i] << ", expected " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

void ExpectPathsAgree(const TestWeight& weight, Precision precision, int64_t rows_max) {
  base::ThreadPool pool(1);
  const auto w = weight.Pack(precision, pool);
  const std::vector<float> x = TestInputs(rows_max, w->columns(), 7);
  const std::vector<float> want = Expected(pool, *w, x);
  std::vector<NamedKernels> all = VectorKernels();
  all.push_back({"generic", &kGenericKernels});
  for (const auto& [name, kernels] : all) {
    for (const int64_t rows : kRowCounts) {
      if (rows > rows_max) break;
      ASSERT_TRUE(SameBits(Product(*kernels, pool, *w, x, rows), want))
          << name << " " << gguf::Info(weight.tensor().type).name << " K " << w->columns() << " N "
          << w->rows() << " rows " << rows;
    }
  }
}

void SweepShapes(TensorType type, Precision precision, std::initializer_list<int64_t> ks) {
  for (const int64_t k : ks) {
    for (const int64_t n : kColumnCounts) {
      ExpectPathsAgree(TestWeight(type, k, n, static_cast<uint64_t>(k * 1000 + n)), precision,
                       k * n > 500000 ? 16 : 65);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(LinearPaths, AVectorPathIsTested) { EXPECT_FALSE(VectorKernels().empty()); }

class LinearPathsOfType : public testing::TestWithParam<TensorType> {};

TEST_P(LinearPathsOfType, GiveTheSameBitsForEveryShapeAndNumberOfRows) {
  if (HasSuperBlocks(GetParam())) {
    SweepShapes(GetParam(), Precision::kFast, {256, 512, 768, 1024, 4864});
  } else {
    SweepShapes(GetParam(), Precision::kFast, {32, 64, 224, 288, 480, 896, 4864});
  }
}

TEST_P(LinearPathsOfType, GiveTheSameBitsOnTheFloatPath) {
  SweepShapes(GetParam(), Precision::kFloat, {256, 512});
}

TEST_P(LinearPathsOfType, GiveTheSameBitsForExtremeIntegers) {
  for (const Fill fill : {Fill::kZeros, Fill::kOnes, Fill::kHighBits}) {
    ExpectPathsAgree(TestWeight(GetParam(), 512, 32, 3, fill), Precision::kFast, 33);
  }
}

INSTANTIATE_TEST_SUITE_P(Integers, LinearPathsOfType, testing::ValuesIn(IntegerTypes()),
                         [](const auto& type) { return std::string(gguf::Info(type.param).name); });

TEST(LinearPaths, OfFloatTypesGiveTheSameBitsForAnyWidth) {
  for (const TensorType type : FloatTypes()) {
    SweepShapes(type, Precision::kFast, {1, 2, 31, 33, 64, 100, 896});
  }
}

TEST(LinearPaths, RoundActivationsToTheSameBits) {
  const int64_t k = 32 * 40 + 5;
  std::vector<float> x = TestInputs(3, k, 11);
  x[40] = INFINITY;
  x[100] = NAN;
  x[200] = -INFINITY;
  x[300] = 3e38f;
  const QuantizedRows want = Quantize(kGenericKernels, x, k);
  for (const auto& [name, kernels] : VectorKernels()) {
    const QuantizedRows got = Quantize(*kernels, x, k);
    for (int64_t r = 0; r < 3; ++r) {
      ASSERT_EQ(
          0, std::memcmp(got.values(r), want.values(r), static_cast<size_t>(got.blocks() * kBlock)))
          << name;
      ASSERT_EQ(0, std::memcmp(got.block(r), want.block(r),
                               static_cast<size_t>(got.blocks()) * sizeof(QuantizedBlock)))
          << name << " row " << r;
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::linear
