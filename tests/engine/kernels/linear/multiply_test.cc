// MultiplyRows: threads, partitions, fused tasks, bias and residual; and its numbers against a
// product in double precision.
#include "engine/kernels/cpu/linear/multiply.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/kernels/linear/cases.h"

namespace kvasir::kernels::linear {
namespace {

using gguf::TensorType;

std::vector<NamedKernels> AllKernels() {
  std::vector<NamedKernels> all = VectorKernels();
  all.push_back({"generic", &kGenericKernels});
  return all;
}

TEST(MultiplyRows, DoesNotDependOnTheNumberOfThreads) {
  base::ThreadPool one(1), two(2), three(3);
  for (const auto& [name, kernels] : VectorKernels()) {
    for (const TensorType type : {TensorType::kQ5_0, TensorType::kQ6_K, TensorType::kF16}) {
      const TestWeight weight(type, 512, 400, 5);
      const auto w = weight.Pack(Precision::kFast, one);
      for (const int64_t rows : {1, 6, 129, 300}) {
        const std::vector<float> x = TestInputs(rows, 512, 9);
        const std::vector<float> want = Product(*kernels, one, *w, x, rows);
        EXPECT_EQ(want, Product(*kernels, two, *w, x, rows)) << name << " " << rows;
        EXPECT_EQ(want, Product(*kernels, three, *w, x, rows)) << name << " " << rows;
      }
    }
  }
}

TEST(MultiplyRows, RowsBeyondOneRangeEqualRowsAlone) {
  base::ThreadPool pool(2);
  const TestWeight weight(TensorType::kQ4_K, 256, 40, 5);
  const auto w = weight.Pack(Precision::kFast, pool);
  const int64_t rows = 261;
  const std::vector<float> x = TestInputs(rows, 256, 2);
  for (const auto& [name, kernels] : AllKernels()) {
    const std::vector<float> all = Product(*kernels, pool, *w, x, rows);
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<float> row(x.begin() + r * 256, x.begin() + (r + 1) * 256);
      const std::vector<float> alone = Product(*kernels, pool, *w, row, 1);
      for (int64_t c = 0; c < 40; ++c) {
        ASSERT_EQ(all[static_cast<size_t>(r * 40 + c)], alone[static_cast<size_t>(c)]) << name;
      }
    }
  }
}

TEST(MultiplyRows, FusedTasksEqualSeparateOnes) {
  base::ThreadPool pool(2);
  const int64_t k = 256, rows = 19;
  const TestWeight a(TensorType::kQ4_1, k, 33, 1), b(TensorType::kQ8_0, k, 1, 2),
      c(TensorType::kF32, k, 160, 3), d(TensorType::kQ6_K, k, 16, 4);
  const std::vector<float> x = TestInputs(rows, k, 4);
  for (const auto& [name, kernels] : AllKernels()) {
    const QuantizedRows q = Quantize(*kernels, x, k);
    std::vector<std::unique_ptr<PackedMatrix>> weights;
    std::vector<std::vector<float>> outs;
    for (const TestWeight* w : {&a, &b, &c, &d}) {
      weights.push_back(w->Pack(Precision::kFast, pool));
      outs.emplace_back(static_cast<size_t>(rows * weights.back()->rows()));
    }
    std::vector<LinearTask> tasks;
    for (size_t i = 0; i < weights.size(); ++i) {
      tasks.push_back(
          {.weight = weights[i].get(), .out = outs[i].data(), .out_stride = weights[i]->rows()});
    }
    MultiplyRows(*kernels, pool, rows, x.data(), k, &q, tasks);
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(outs[i], Product(*kernels, pool, *weights[i], x, rows)) << name << " task " << i;
    }
  }
}

TEST(MultiplyRows, AddsBiasThenOldOutputAndLeavesTheRestAlone) {
  base::ThreadPool pool(1);
  const int64_t k = 64, n = 35, stride = 40, rows = 5;
  const TestWeight weight(TensorType::kQ4_0, k, n, 1);
  const auto w = weight.Pack(Precision::kFast, pool);
  const std::vector<float> x = TestInputs(rows, k, 4);
  const std::vector<float> bias = TestInputs(1, n, 5);
  const std::vector<float> old = TestInputs(rows, stride, 6);
  for (const auto& [name, kernels] : AllKernels()) {
    const QuantizedRows q = Quantize(*kernels, x, k);
    const std::vector<float> plain = Product(*kernels, pool, *w, x, rows);
    std::vector<float> out = old;
    const LinearTask task = {.weight = w.get(),
                             .bias = bias.data(),
                             .out = out.data(),
                             .out_stride = stride,
                             .add = true};
    MultiplyRows(*kernels, pool, rows, x.data(), k, &q, {&task, 1});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < stride; ++c) {
        const size_t i = static_cast<size_t>(r * stride + c);
        const float want =
            c < n ? (plain[static_cast<size_t>(r * n + c)] + bias[static_cast<size_t>(c)]) + old[i]
                  : old[i];
        ASSERT_EQ(out[i], want) << name << " row " << r << " column " << c;
      }
    }
  }
}

TEST(MultiplyRows, OfNoRowsWritesNothing) {
  base::ThreadPool pool(2);
  const TestWeight weight(TensorType::kQ8_0, 32, 16, 1);
  const auto w = weight.Pack(Precision::kFast, pool);
  QuantizedRows q(1, 32);
  std::vector<float> out(16, 5.0f);
  const LinearTask task = {.weight = w.get(), .out = out.data(), .out_stride = 16};
  MultiplyRows(kGenericKernels, pool, 0, nullptr, 0, &q, {&task, 1});
  EXPECT_EQ(out, std::vector<float>(16, 5.0f));
}

TEST(MultiplyRows, OfANotFiniteInputGivesNaNInItsRowOnly) {
  base::ThreadPool pool(1);
  const TestWeight weight(TensorType::kQ5_1, 96, 20, 1);
  const auto w = weight.Pack(Precision::kFast, pool);
  std::vector<float> x = TestInputs(3, 96, 4);
  const std::vector<float> clean = Product(kGenericKernels, pool, *w, x, 3);
  x[96 + 40] = INFINITY;
  for (const auto& [name, kernels] : AllKernels()) {
    const std::vector<float> out = Product(*kernels, pool, *w, x, 3);
    for (size_t i = 0; i < out.size(); ++i) {
      if (i / 20 == 1) {
        ASSERT_TRUE(std::isnan(out[i])) << name;
      } else {
        ASSERT_EQ(out[i], clean[i]) << name;
      }
    }
  }
}

// |error| of a product: each activation is off by at most half a step of its block (the step is max
// / 127), weights are exact; each of the about three float operations per block rounds a partial
// sum of at most Σ TermMax · |x̂ q|.
void ExpectCloseToDouble(const TestWeight& weight, Precision precision, const std::string& name,
                         const Kernels& kernels, int64_t rows) {
  base::ThreadPool pool(1);
  const auto packed = weight.Pack(precision, pool);
  const std::vector<float> w = weight.Dequantized();
  const int64_t k = packed->columns(), n = packed->rows();
  const std::vector<float> x = TestInputs(rows, k, 21);
  const std::vector<float> out = Product(kernels, pool, *packed, x, rows);
  const double operations =
      packed->integer() ? 3.0 * static_cast<double>(k / kBlock) + 8 : static_cast<double>(k);
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> step(static_cast<size_t>(k), 0.0);
    double magnitude = 0;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t first = i / kBlock * kBlock;
      for (int64_t j = first; j < std::min(k, first + kBlock) && packed->integer(); ++j) {
        step[static_cast<size_t>(i)] = std::max<double>(
            step[static_cast<size_t>(i)], std::fabs(x[static_cast<size_t>(r * k + j)]) / 127);
      }
      magnitude += weight.TermMax() *
                   (std::fabs(x[static_cast<size_t>(r * k + i)]) + step[static_cast<size_t>(i)]);
    }
    for (int64_t c = 0; c < n; ++c) {
      double want = 0, tolerance = operations * 0x1p-24 * magnitude;
      for (int64_t i = 0; i < k; ++i) {
        const double wi = w[static_cast<size_t>(c * k + i)];
        want += wi * x[static_cast<size_t>(r * k + i)];
        tolerance += std::fabs(wi) * step[static_cast<size_t>(i)] * (0.5 + 0x1p-14);
      }
      const double got = out[static_cast<size_t>(r * n + c)];
      ASSERT_TRUE(std::fabs(got - want) <= tolerance)
          << name << " " << gguf::Info(weight.tensor().type).name << " row " << r << " column " << c
          << ": " << got << ", expected " << want << " within " << tolerance;
    }
  }
}

TEST(MultiplyRows, StaysWithinTheRoundingOfItsInputsOfADoubleProduct) {
  for (const auto& [name, kernels] : AllKernels()) {
    for (const TensorType type : IntegerTypes()) {
      ExpectCloseToDouble(TestWeight(type, 768, 19, 13), Precision::kFast, name, *kernels, 5);
    }
    for (const TensorType type : FloatTypes()) {
      ExpectCloseToDouble(TestWeight(type, 301, 19, 13), Precision::kFast, name, *kernels, 5);
    }
  }
}

TEST(MultiplyRows, OnTheFloatPathRoundsNoInput) {
  for (const auto& [name, kernels] : AllKernels()) {
    for (const TensorType type : IntegerTypes()) {
      ExpectCloseToDouble(TestWeight(type, 512, 19, 13), Precision::kFloat, name, *kernels, 5);
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::linear
