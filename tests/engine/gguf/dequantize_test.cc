// Dequantization against tests/golden/dequant.jsonl, bit for bit (values of the gguf package and of
// ggml's C functions), and block layouts one element at a time.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/gguf/float16.h"
#include "engine/gguf/types.h"

namespace kvasir::gguf {
namespace {

std::vector<uint8_t> FromHex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<nlohmann::json> GoldenRows() {
  std::vector<nlohmann::json> rows;
  std::ifstream in("tests/golden/dequant.jsonl");
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(Dequantize, EqualsTheGoldenRowsBitForBit) {
  std::map<std::string, int> rows_of_type;
  for (const auto& row : GoldenRows()) {
    const auto id = row["ggml_type"].get<uint32_t>();
    if (!IsSupportedTypeId(id)) continue;
    const auto type = static_cast<TensorType>(id);
    const std::string where = row["type"].get<std::string>() + " " + row["case"].get<std::string>();
    ++rows_of_type[row["type"]];
    EXPECT_EQ(Info(type).name, row["type"].get<std::string>());
    EXPECT_EQ(Info(type).block_elements, row["block_elements"]) << where;
    EXPECT_EQ(Info(type).block_bytes, row["block_bytes"]) << where;
    const auto blocks = FromHex(row["bytes_hex"]);
    const auto expected = FromHex(row["f32_hex"]);
    const auto n = row["n"].get<int64_t>();
    std::vector<float> values(static_cast<size_t>(n), NAN);
    ASSERT_EQ(expected.size(), values.size() * sizeof(float)) << where;
    Dequantize(type, blocks.data(), n, values.data());
    for (size_t i = 0; i < values.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, expected.data() + i * 4, 4);
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), bits) << where << " element " << i;
    }
  }
  const std::map<std::string, int> all = {{"Q4_0", 3}, {"Q4_1", 3}, {"Q5_0", 3}, {"Q5_1", 3},
                                          {"Q8_0", 3}, {"Q4_K", 2}, {"Q5_K", 2}, {"Q6_K", 2},
                                          {"F16", 2},  {"BF16", 2}};
  EXPECT_EQ(rows_of_type, all);
}

TEST(Dequantize, OtherTypesOfTheGoldensAreNotSupportedButHaveTheirNames) {
  int others = 0;
  for (const auto& row : GoldenRows()) {
    const auto id = row["ggml_type"].get<uint32_t>();
    EXPECT_EQ(NameOfTypeId(id), row["type"].get<std::string>());
    others += IsSupportedTypeId(id) ? 0 : 1;
  }
  EXPECT_GT(others, 0);
  EXPECT_EQ(NameOfTypeId(41), "");
  EXPECT_EQ(NameOfTypeId(0xffffffff), "");
}

TEST(Dequantize, CopiesF32WithItsNanAndInfinityFromAnyAddress) {
  const uint32_t bits[] = {0x3f800000, 0x7fc00001, 0xff800000, 0x80000000, 0x00000001};
  std::vector<uint8_t> bytes(1 + sizeof(bits));
  std::memcpy(bytes.data() + 1, bits, sizeof(bits));
  float values[5];
  Dequantize(TensorType::kF32, bytes.data() + 1, 5, values);
  EXPECT_EQ(std::memcmp(values, bits, sizeof(bits)), 0);
}

// All 65,536 numbers against an independent rule: sign · fraction · 2^exponent.
TEST(HalfToFloat, IsExactForEveryNumber) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int fraction = static_cast<int>(bits & 1023);
    if (exponent == 31) {
      ASSERT_TRUE(fraction == 0 ? std::isinf(value) : std::isnan(value)) << bits;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(std::fabs(static_cast<double>(value)), magnitude) << bits;
    }
    ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
  }
}

// A Q5 block whose only set bit is the fifth bit of element j: bit 31 included (a shift of 32 is
// undefined).
TEST(Dequantize, FindsTheFifthBitOfEveryElementOfQ5) {
  for (int j = 0; j < 32; ++j) {
    std::vector<uint8_t> block(24, 0);
    block[1] = 0x3c;  // d = 1, m = 0
    block[static_cast<size_t>(4 + j / 8)] = static_cast<uint8_t>(1 << j % 8);
    float values[32];
    Dequantize(TensorType::kQ5_1, block.data(), 32, values);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(values[i], i == j ? 16.0f : 0.0f) << j << " " << i;
    block.erase(block.begin() + 2, block.begin() + 4);  // Q5_0: no m, offset 16
    Dequantize(TensorType::kQ5_0, block.data(), 32, values);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(values[i], i == j ? 0.0f : -16.0f) << j << " " << i;
  }
}

TEST(Dequantize, GivesTheZeroOfEveryTypeForAllZeroBlocks) {
  const TensorType types[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kQ4_0,
                              TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
                              TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K,
                              TensorType::kQ6_K, TensorType::kBF16};
  for (const TensorType type : types) {
    const std::vector<uint8_t> blocks(static_cast<size_t>(Info(type).block_bytes) * 3, 0);
    std::vector<float> values(static_cast<size_t>(Info(type).block_elements) * 3 + 1, 7.0f);
    const auto n = static_cast<int64_t>(values.size() - 1);
    Dequantize(type, blocks.data(), n, values.data());
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], 0.0f) << Info(type).name;
    EXPECT_EQ(values.back(), 7.0f) << Info(type).name << " wrote past its elements";
  }
}

TEST(Dequantize, WritesNothingForNoElements) {
  float value = 7.0f;
  Dequantize(TensorType::kQ4_K, nullptr, 0, &value);
  EXPECT_EQ(value, 7.0f);
}

}  // namespace
}  // namespace kvasir::gguf
