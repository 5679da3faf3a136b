// The loops of kernels.h, path by path: conversions exhaustively, exp against libm, sums bit for
// bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/gguf/float16.h"
#include "engine/kernels/rope.h"
#include "tests/engine/kernels/elements.h"
#include "tests/engine/kernels/subjects.h"

namespace kvasir::kernels::testing {
namespace {

TEST(Vector, EveryHalfIsWidenedExactlyAndComesBack) {
  std::vector<uint16_t> halves;
  for (int h = 0; h < 0x10000; ++h) halves.push_back(static_cast<uint16_t>(h));
  for (const Subject& subject : Subjects(Precision::kFast)) {
    std::vector<float> floats(halves.size());
    std::vector<uint16_t> back(halves.size());
    subject.kernels->f16.load(reinterpret_cast<const std::byte*>(halves.data()), 0x10000,
                              floats.data());
    subject.kernels->f16.store(floats.data(), 0x10000, reinterpret_cast<std::byte*>(back.data()));
    for (int h = 0; h < 0x10000; ++h) {
      const float expected = gguf::HalfToFloat(halves[h]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(floats[h]));
        EXPECT_EQ(back[h], halves[h] | 0x200) << subject.name;
      } else {
        EXPECT_EQ(std::memcmp(&floats[h], &expected, 4), 0) << subject.name << " " << h;
        EXPECT_EQ(back[h], halves[h]) << subject.name;
      }
    }
  }
}

// Around every midpoint between neighbours, where rounding turns.
TEST(Vector, FloatsRoundToTheNearestHalfTiesToEven) {
  std::vector<float> floats;
  std::vector<uint16_t> expected;
  const auto expect = [&](float x, int half) {
    floats.insert(floats.end(), {x, -x});
    expected.push_back(static_cast<uint16_t>(half));
    expected.push_back(static_cast<uint16_t>(half | 0x8000));
  };
  for (int h = 0; h < 0x7c00; ++h) {
    const double below = gguf::HalfToFloat(static_cast<uint16_t>(h));
    const double above = h == 0x7bff ? 65536.0 : gguf::HalfToFloat(static_cast<uint16_t>(h + 1));
    const auto middle = static_cast<float>((below + above) / 2);
    expect(std::nextafter(middle, 0.0f), h);
    expect(middle, h % 2 == 0 ? h : h + 1);
    expect(std::nextafter(middle, 1e9f), h + 1);
  }
  expect(std::numeric_limits<float>::infinity(), 0x7c00);
  expect(3e38f, 0x7c00);
  expect(std::numeric_limits<float>::denorm_min(), 0);
  for (const Subject& subject : Subjects(Precision::kFast)) {
    std::vector<uint16_t> out(floats.size());
    subject.kernels->f16.store(floats.data(), static_cast<int64_t>(floats.size()),
                               reinterpret_cast<std::byte*>(out.data()));
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(out[i], expected[i]) << subject.name << " " << floats[i];
    }
  }
}

TEST(Vector, ExpIsWithinTwoUlpOfLibmAndKeepsItsLimits) {
  std::vector<float> x;
  for (float v = -87.33f; v <= 88.37f; v += 0.00173f) x.push_back(v);
  for (float v = 1e-30f; v < 1.0f; v *= 1.37f) x.insert(x.end(), {v, -v});
  const auto normal = x.size();
  const float inf = std::numeric_limits<float>::infinity();
  x.insert(x.end(), {0.0f, -0.0f, -87.4f, -1e30f, -inf, inf, std::nanf("")});
  std::vector<float> first;
  for (const Subject& subject : Subjects(Precision::kFast)) {
    std::vector<float> out(x.size());
    subject.kernels->exp(x.data(), static_cast<int64_t>(x.size()), out.data());
    for (size_t i = 0; i < normal; ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      ASSERT_TRUE(std::fabs(out[i] - expected) <= 2 * 0x1p-23 * expected)
          << subject.name << " exp(" << x[i] << ") = " << out[i];
    }
    EXPECT_EQ(out[normal], 1.0f);
    EXPECT_EQ(out[normal + 1], 1.0f);
    for (const size_t i : {normal + 2, normal + 3, normal + 4}) EXPECT_EQ(out[i], 0.0f);
    EXPECT_TRUE(out[normal + 5] > 2e38f);
    EXPECT_TRUE(std::isnan(out[normal + 6]));
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(out.data(), first.data(), (normal + 6) * 4), 0) << subject.name;
  }
}

TEST(Vector, NormGatesAndRotationGiveTheSameBitsOnEveryPath) {
  const std::vector<Subject> subjects = Subjects(Precision::kFast);
  for (const int n : {1, 7, 16, 31, 64, 577}) {
    std::vector<float> a(n), b(n);
    for (int i = 0; i < n; ++i) {
      a[i] = ValueAt(1, i, 0, 30.0f);
      b[i] = ValueAt(2, i, 0, 1e4f);
    }
    std::vector<float> first;
    for (const Subject& subject : subjects) {
      std::vector<float> out(5 * n);
      subject.kernels->norm(a.data(), b.data(), n, 1e-5f, out.data());
      subject.kernels->silu(a.data(), b.data(), n, out.data() + n);
      subject.kernels->gelu_tanh(a.data(), b.data(), n, out.data() + 2 * n);
      const int rotated = n / 2 * 2;
      const RopeTable rope(RopeOptions{.rotated = rotated, .positions_max = 100});
      for (const bool interleaved : {false, true}) {
        subject.kernels->rotate(a.data(), n,
                                {.cos = rope.cos(99),
                                 .sin = rope.sin(99),
                                 .rotated = rotated,
                                 .interleaved = interleaved},
                                out.data() + (interleaved ? 4 : 3) * n);
      }
      std::vector<float> table(n);
      rope.Rotate(a.data(), n, 99, table.data());
      EXPECT_EQ(std::memcmp(table.data(), out.data() + 3 * n, n * 4), 0) << subject.name;
      if (first.empty()) first = out;
      EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << subject.name << n;
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::testing
