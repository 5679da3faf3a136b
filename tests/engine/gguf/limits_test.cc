// Sizes in a file are claims: each is refused when the bytes are not there, before anything is
// allocated, added or multiplied from it. The cases are kinds of faults that users of other GGUF
// readers reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/gguf/file.h"
#include "tests/engine/gguf/counting_allocator.h"
#include "tests/engine/gguf/writer.h"

namespace kvasir::gguf {
namespace {

// Parsing fails with a message that holds `part`, and allocates little.
void ExpectRefused(const Bytes& bytes, const std::string& part) {
  const uint64_t before = AllocatedBytes();
  const auto file = File::Parse(bytes);
  EXPECT_LT(AllocatedBytes() - before, 32 * bytes.size() + 16 * 1024) << part;
  ASSERT_FALSE(file.ok()) << part;
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.status().message()), testing::HasSubstr(part));
}

TEST(Limits, AStringOfOneGibibyteInAFileOf160BytesIsRefused) {
  Bytes value;
  Append<uint64_t>(value, uint64_t{1} << 30);
  value.resize(100, 'x');
  ExpectRefused(GgufWriter().Key("general.name", kTypeString, value).Build(), "'general.name'");
}

TEST(Limits, AStringOfNearlyTwoToThe64thIsRefusedWithoutWrapping) {
  for (const uint64_t size : {UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 40, uint64_t{1} << 63}) {
    Bytes value;
    Append(value, size);
    ExpectRefused(GgufWriter().Key("s", kTypeString, value).Build(), "'s'");
  }
}

TEST(Limits, AnArrayLongerThanTheBytesLeftIsRefusedForEveryElementType) {
  for (const uint32_t type : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12}) {
    for (const uint64_t count : {uint64_t{100}, uint64_t{1} << 40, uint64_t{1} << 61,
                                 uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
      ExpectRefused(GgufWriter().Array("a", type, count, Bytes(16, 0)).Build(), "'a'");
    }
  }
}

TEST(Limits, NestedArraysAreRefusedAtAnyDepth) {
  Bytes inner;
  for (int depth = 0; depth < 100000; ++depth) {
    Append(inner, kTypeArray);
    Append<uint64_t>(inner, 1);
  }
  ExpectRefused(GgufWriter().Array("a", kTypeArray, 1, inner).Build(), "array of arrays");
  ExpectRefused(GgufWriter().Array("a", kTypeArray, 0, {}).Build(), "array of arrays");
}

TEST(Limits, ArraysTogetherHoldAtMost16777216Values) {
  const Bytes half(uint64_t{1} << 23, 1);
  GgufWriter writer;
  writer.Array("a", kTypeU8, half.size(), half).Array("b", kTypeU8, half.size(), half);
  const Bytes full = writer.Build();
  EXPECT_TRUE(File::Parse(full).ok());
  ExpectRefused(writer.Array("c", kTypeU8, 1, {1}).Build(), "'c'");
}

TEST(Limits, ClaimedCountsOfKeysAndTensorsAreRefusedBeforeAnyWork) {
  for (const uint64_t count :
       {uint64_t{7}, uint64_t{65537}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX}) {
    ExpectRefused(GgufWriter().U32("k", 1).ClaimKeys(count).Build(), "key count");
    ExpectRefused(GgufWriter().U32("k", 1).ClaimTensors(count).Build(), "tensor count");
  }
}

TEST(Limits, ATensorHasOneToFourDimensions) {
  const Bytes data(32, 0);
  ExpectRefused(GgufWriter().Entry("t", {}, 0, 0).Data(data).Build(), "0 dimensions");
  ExpectRefused(GgufWriter().Entry("t", std::vector<uint64_t>(5, 1), 0, 0).Data(data).Build(),
                "5 dimensions");
  ExpectRefused(GgufWriter().Entry("t", std::vector<uint64_t>(9, 1), 0, 0).Data(data).Build(),
                "9 dimensions");
  const Bytes four = GgufWriter().Entry("t", {1, 1, 1, 1}, 0, 0).Data(data).Build();
  EXPECT_TRUE(File::Parse(four).ok());
}

TEST(Limits, ADimensionThatOverflowsSomethingIsRefused) {
  const Bytes data(64, 0);
  const auto refused = [&](std::vector<uint64_t> dims) {
    ExpectRefused(GgufWriter().Entry("t", dims, 0, 0).Data(data).Build(), "'t'");
  };
  refused({(uint64_t{1} << 42) + 1});
  refused({uint64_t{1} << 63});
  refused({UINT64_MAX});
  refused({(uint64_t{1} << 62) + 8});                  // · 4 bytes is 32 modulo 2^64
  refused({uint64_t{1} << 32, uint64_t{1} << 32});     // 0 modulo 2^64
  refused({uint64_t{1} << 33, uint64_t{1} << 32, 2});  // 0 modulo 2^64, with a factor after it
  refused({1, UINT64_MAX, UINT64_MAX, 1});             // 1 modulo 2^64
  refused({0});
  refused({8, 0});
}

TEST(Limits, ADataSizeThatPaddingWouldWrapIsRefused) {
  // SIZE_MAX - 3 bytes of F16 and F32: rounding up to the alignment would give 0.
  ExpectRefused(GgufWriter().Entry("t", {UINT64_MAX / 4}, 0, 0).Data(Bytes(64, 0)).Build(), "'t'");
  ExpectRefused(GgufWriter().Entry("t", {UINT64_MAX / 2 - 1}, 1, 0).Data(Bytes(64, 0)).Build(),
                "'t'");
}

TEST(Limits, AnOffsetThatWrapsOrLiesPastTheEndIsRefused) {
  for (const uint64_t offset :
       {uint64_t{64}, uint64_t{4096}, uint64_t{1} << 63, UINT64_MAX - 31, UINT64_MAX - 255}) {
    ExpectRefused(GgufWriter().Entry("t", {8}, 0, offset).Data(Bytes(64, 0)).Build(), "'t'");
  }
  ExpectRefused(GgufWriter().Entry("t", {9}, 0, 32).Data(Bytes(64, 0)).Build(), "'t'");
}

TEST(Limits, APaddingLargerThanTheFileIsRefused) {
  for (const uint32_t alignment : {uint32_t{1} << 30, uint32_t{1} << 31}) {
    ExpectRefused(GgufWriter()
                      .U32("general.alignment", alignment)
                      .Entry("t", {8}, 0, 0)
                      .Data(Bytes(64, 0))
                      .Build(),
                  "padding");
  }
}

TEST(Limits, TensorsThatOverlapAreRefusedInAnyOrder) {
  const Bytes data(128, 0);
  ExpectRefused(GgufWriter().Entry("t", {16}, 0, 0).Entry("u", {8}, 0, 32).Data(data).Build(),
                "overlap");
  ExpectRefused(GgufWriter().Entry("u", {8}, 0, 32).Entry("t", {16}, 0, 0).Data(data).Build(),
                "overlap");
  ExpectRefused(GgufWriter()
                    .Entry("t", {8}, 0, 0)
                    .Entry("v", {1}, 0, 96)
                    .Entry("u", {1}, 0, 0)
                    .Data(data)
                    .Build(),
                "overlap");
}

TEST(Limits, TypesWithoutDequantizationAreRefusedByName) {
  const Bytes data(512, 0);
  ExpectRefused(GgufWriter().Entry("t", {256}, 23, 0).Data(data).Build(), "IQ4_XS (23)");
  ExpectRefused(GgufWriter().Entry("t", {256}, 10, 0).Data(data).Build(), "Q2_K (10)");
  ExpectRefused(GgufWriter().Entry("t", {256}, 99, 0).Data(data).Build(), "unknown type 99");
}

TEST(Limits, NamesAndKeysFromTheFileAreEscapedInMessages) {
  Bytes value;
  Append<uint64_t>(value, 1000);
  ExpectRefused(GgufWriter().Key("a\n\x1b[2J", kTypeString, value).Build(), "'a\\x0a\\x1b[2J'");
  ExpectRefused(GgufWriter().U32("a", 1).U32("a", 2).Build(), "duplicate key 'a'");
  ExpectRefused(GgufWriter().U32(std::string(65536, 'k'), 1).Build(), "at most 65535");
}

// A well-formed file cut at every length: never accepted before the last byte of its data.
TEST(Limits, EveryPrefixOfAFileIsRefused) {
  const Bytes bytes = GgufWriter()
                          .U32("n", 1)
                          .Strings("s", {"ab", ""})
                          .F32Tensor("t", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
                          .Build();
  EXPECT_TRUE(File::Parse(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_FALSE(File::Parse(cut).ok()) << size << " of " << bytes.size();
  }
}

}  // namespace
}  // namespace kvasir::gguf
