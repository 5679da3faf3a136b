// Philox against the published vectors of its authors; what is built on it by its properties.
#include "engine/base/rng.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kvasir::base {
namespace {

using Words = std::array<uint32_t, 4>;

// Random123 1.14, tests/kat_vectors, "philox4x32 10".
TEST(Philox, GivesTheKnownAnswersOfItsAuthors) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformAt, IsAFunctionOfSeedStreamAndPosition) {
  EXPECT_EQ(UniformAt(1, 2, 3), UniformAt(1, 2, 3));
  std::set<double> draws;
  for (const uint64_t bit :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63}) {
    draws.insert(UniformAt(bit, 0, 0));
    if (bit != 0) draws.insert(UniformAt(0, bit, 0));
    if (bit != 0) draws.insert(UniformAt(0, 0, bit));
  }
  EXPECT_EQ(draws.size(), 13u);  // every bit of every argument counts
}

TEST(UniformAt, LiesInZeroToOneWithTheMomentsOfAUniform) {
  constexpr int kDraws = 10000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = UniformAt(42, 7, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  // The draws are fixed. 5 standard errors: variance of u is 1/12, of u² 4/45.
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 5 * 0.2887 / 100);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 5 * 0.2982 / 100);
}

TEST(SeededEntropy, GivesTheSameBytesHoweverTheyAreAskedFor) {
  std::vector<uint8_t> whole(100);
  SeededEntropy(5).Fill(whole);
  SeededEntropy parts(5);
  std::vector<uint8_t> joined;
  for (const size_t size : {1, 2, 15, 16, 17, 49}) {
    std::vector<uint8_t> part(size);
    parts.Fill(part);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, whole);
  std::vector<uint8_t> other(100);
  SeededEntropy(6).Fill(other);
  EXPECT_NE(other, whole);
}

TEST(SeededEntropy, StartsWithTheBytesOfPhilox) {
  std::vector<uint8_t> bytes(16);
  SeededEntropy(0).Fill(bytes);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0xd5, 0xe8, 0x27, 0x66, 0x8d, 0xc5, 0x69, 0xe1, 0x4c, 0xac,
                                         0x57, 0xbc, 0xd8, 0xdb, 0x00, 0x9b}));
}

TEST(SystemEntropy, FillsEveryByteAndDoesNotRepeat) {
  SystemEntropy entropy;
  std::set<std::vector<uint8_t>> seen;
  std::vector<uint8_t> any(64, 0);
  for (int i = 0; i < 16; ++i) {
    std::vector<uint8_t> bytes(64);
    entropy.Fill(bytes);
    for (size_t j = 0; j < bytes.size(); ++j) any[j] |= bytes[j];
    seen.insert(bytes);
  }
  EXPECT_EQ(seen.size(), 16u);
  for (const uint8_t byte : any) EXPECT_NE(byte, 0);  // 16 zero bytes in one place: 2^-128
  entropy.Fill({});
}

}  // namespace
}  // namespace kvasir::base
