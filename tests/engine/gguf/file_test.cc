// File: what a well-formed file gives back, in every value type, and the errors of typed access.
#include "engine/gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/gguf/writer.h"

namespace kvasir::gguf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// REQUIRES: the bytes are well formed. They must outlive the file.
std::unique_ptr<File> ParseOrDie(const Bytes& bytes) {
  auto file = File::Parse(bytes);
  if (!file.ok()) ADD_FAILURE() << file.status();
  return std::move(file).value();
}

TEST(File, ReadsVersionsTwoAndThree) {
  for (const uint32_t version : {2u, 3u}) {
    const Bytes bytes = GgufWriter().U32("k", 1).Build(version);
    EXPECT_EQ(ParseOrDie(bytes)->version(), version);
  }
}

TEST(File, WidensEveryScalarType) {
  const Bytes bytes = GgufWriter()
                          .Scalar<uint8_t>("u8", 0, 255)
                          .Scalar<int8_t>("i8", 1, -128)
                          .Scalar<uint16_t>("u16", 2, 65535)
                          .Scalar<int16_t>("i16", 3, -32768)
                          .Scalar<uint32_t>("u32", 4, 4294967295)
                          .Scalar<int32_t>("i32", 5, INT32_MIN)
                          .Scalar<uint64_t>("u64", 10, INT64_MAX)
                          .Scalar<int64_t>("i64", 11, INT64_MIN)
                          .Build();
  const auto file = ParseOrDie(bytes);
  EXPECT_EQ(*file->GetInt("u8"), 255);
  EXPECT_EQ(*file->GetInt("i8"), -128);
  EXPECT_EQ(*file->GetInt("u16"), 65535);
  EXPECT_EQ(*file->GetInt("i16"), -32768);
  EXPECT_EQ(*file->GetInt("u32"), 4294967295);
  EXPECT_EQ(*file->GetInt("i32"), INT32_MIN);
  EXPECT_EQ(*file->GetInt("u64"), INT64_MAX);
  EXPECT_EQ(*file->GetInt("i64"), INT64_MIN);
}

TEST(File, ReadsFloatsBoolsAndStrings) {
  const Bytes bytes = GgufWriter()
                          .F32("f32", 0.1f)
                          .Scalar<double>("f64", 12, 0.1)
                          .Scalar<uint8_t>("no", kTypeBool, 0)
                          .Scalar<uint8_t>("yes", kTypeBool, 1)
                          .String("empty", "")
                          .String("bytes", std::string_view("\0\xff", 2))
                          .Build();
  const auto file = ParseOrDie(bytes);
  EXPECT_EQ(*file->GetFloat("f32"), static_cast<double>(0.1f));
  EXPECT_EQ(*file->GetFloat("f64"), 0.1);
  EXPECT_FALSE(*file->GetBool("no"));
  EXPECT_TRUE(*file->GetBool("yes"));
  EXPECT_EQ(*file->GetString("empty"), "");
  EXPECT_EQ(*file->GetString("bytes"), std::string_view("\0\xff", 2));
  EXPECT_TRUE(file->Has("empty"));
  EXPECT_FALSE(file->Has("emp"));
}

TEST(File, ReadsArraysOfEveryKind) {
  const Bytes bytes = GgufWriter()
                          .Numbers<uint8_t>("u8", kTypeU8, {1, 255})
                          .Numbers<int32_t>("i32", kTypeI32, {-1, 1})
                          .Numbers<float>("f32", kTypeF32, {0.5f, -INFINITY})
                          .Numbers<uint8_t>("bool", kTypeBool, {1, 0})
                          .Strings("strings", {"a", "", "\xc3\xa9"})
                          .Array("none", kTypeString, 0, {})
                          .Build();
  const auto file = ParseOrDie(bytes);
  const auto values = [&](std::string_view key) { return (*file->GetArray(key))->values; };
  EXPECT_THAT(std::get<std::vector<uint64_t>>(values("u8")), ElementsAre(1, 255));
  EXPECT_THAT(std::get<std::vector<int64_t>>(values("i32")), ElementsAre(-1, 1));
  EXPECT_THAT(std::get<std::vector<double>>(values("f32")), ElementsAre(0.5, -INFINITY));
  EXPECT_THAT(std::get<std::vector<uint64_t>>(values("bool")), ElementsAre(1, 0));
  EXPECT_THAT(std::get<std::vector<std::string_view>>(values("strings")),
              ElementsAre("a", "", "\xc3\xa9"));
  EXPECT_EQ((*file->GetArray("strings"))->size(), 3u);
  EXPECT_EQ((*file->GetArray("none"))->size(), 0u);
}

TEST(File, SaysWhichKeyIsMissingOrOfAnotherType) {
  const Bytes bytes = GgufWriter().U32("n", 3).String("s", "x").F32("f", 1).Build();
  const auto file = ParseOrDie(bytes);
  EXPECT_EQ(file->GetInt("absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(file->GetInt("absent").status().message()), HasSubstr("'absent'"));
  for (const base::Status& status :
       {file->GetInt("s").status(), file->GetInt("f").status(), file->GetFloat("n").status(),
        file->GetString("n").status(), file->GetBool("n").status(), file->GetArray("s").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("key '")) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is needed")) << status;
  }
}

TEST(File, RefusesAnIntegerAbove63BitsAndAFloatThatIsNotFinite) {
  const Bytes bytes = GgufWriter()
                          .Scalar<uint64_t>("big", kTypeU64, UINT64_MAX)
                          .F32("nan", NAN)
                          .F32("inf", INFINITY)
                          .Build();
  const auto file = ParseOrDie(bytes);
  for (const base::Status& status : {file->GetInt("big").status(), file->GetFloat("nan").status(),
                                     file->GetFloat("inf").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST(File, FindsTensorsWithTheirShapeAndData) {
  const Bytes q8(34 * 4, 5);
  const Bytes bytes = GgufWriter()
                          .F32Tensor("a", {3, 2}, {1, 2, 3, 4, 5, 6})
                          .Tensor("b", {64, 2, 1, 1}, 8, q8)
                          .Build();
  const auto file = ParseOrDie(bytes);
  ASSERT_EQ(file->tensors().size(), 2u);
  const Tensor* a = file->FindTensor("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a, &file->tensors()[0]);
  EXPECT_THAT(a->dims, ElementsAre(3, 2));
  EXPECT_EQ(a->columns(), 3);
  EXPECT_EQ(a->rows(), 2);
  EXPECT_EQ(a->data.size(), 24u);
  EXPECT_EQ(a->data.data(), bytes.data() + a->file_offset);
  const Tensor* b = file->FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, TensorType::kQ8_0);
  EXPECT_EQ(b->elements(), 128);
  EXPECT_EQ(b->file_offset % file->alignment(), 0u);
  EXPECT_EQ(Bytes(b->data.begin(), b->data.end()), q8);
  EXPECT_EQ(file->FindTensor("c"), nullptr);
  file->Release(*a);  // no map: nothing to do
  EXPECT_EQ(a->data[0], 0);
}

TEST(File, ReadsADataSectionWithGapsAndInAnyOrder) {
  Bytes data(160, 0);
  data[128] = 9;
  const Bytes bytes =
      GgufWriter().Entry("late", {8}, 0, 128).Entry("early", {8}, 0, 0).Data(data).Build();
  const auto file = ParseOrDie(bytes);
  EXPECT_EQ(file->FindTensor("late")->data[0], 9);
  EXPECT_EQ(file->FindTensor("early")->data[0], 0);
}

TEST(File, TakesTheAlignmentOfTheFile) {
  for (const uint32_t alignment : {8u, 16u, 32u, 64u}) {
    const Bytes bytes = GgufWriter().U32("general.alignment", alignment).Build();
    EXPECT_EQ(ParseOrDie(bytes)->alignment(), alignment);
  }
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 0xffffffffu}) {
    const Bytes bytes = GgufWriter().U32("general.alignment", alignment).Build();
    EXPECT_FALSE(File::Parse(bytes).ok()) << alignment;
  }
}

}  // namespace
}  // namespace kvasir::gguf
