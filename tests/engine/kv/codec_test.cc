// Codec: what is encoded comes back equal, chunks are cut along turns and layers, and the stored
// form of version 1 stays readable.
#include "engine/kv/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/kv/header.h"
#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

EncodedSegment EncodeTest(const KvSegment& segment, uint64_t seed = 1) {
  base::SeededEntropy entropy(seed);
  return Encode(segment, TestId(9), TestKey(1), entropy);
}

TEST(Codec, RoundTripsExactSegmentsOfEverySize) {
  for (const int tokens : {1, 63, 64, 65, 255, 256, 257, 1500}) {
    for (const ElementType type : {ElementType::kF16, ElementType::kF32}) {
      const auto segment = ExactSegment({.layers = 9, .tokens = tokens, .type = type});
      const EncodedSegment encoded = EncodeTest(*segment);
      EXPECT_EQ(encoded.chunks.size(), 2u * ((tokens + 255) / 256));
      const auto decoded = Decode(encoded, TestKey(1));
      ASSERT_TRUE(decoded.ok()) << tokens << ": " << decoded.status();
      EXPECT_TRUE(SameSegment(**decoded, *segment)) << tokens;
      EXPECT_EQ((*decoded)->ContentDigest(), segment->ContentDigest()) << tokens;
    }
  }
}

TEST(Codec, RoundTripsRaggedSegmentsWithBetaAndPositions) {
  for (const int tokens : {1, 2, 63, 64, 65, 257, 1500}) {
    for (const ElementType type : {ElementType::kF16, ElementType::kF32}) {
      const auto segment = RaggedSegment({.layers = 17, .tokens = tokens, .type = type});
      const EncodedSegment encoded = EncodeTest(*segment);
      EXPECT_EQ(encoded.chunks.size(), 3u);
      const auto decoded = Decode(encoded, TestKey(1));
      ASSERT_TRUE(decoded.ok()) << tokens << ": " << decoded.status();
      EXPECT_TRUE(SameSegment(**decoded, *segment)) << tokens;
    }
  }
}

TEST(Codec, CutsTokensAlongTurnsAndAtMost256) {
  const auto segment =
      ExactSegment({.tokens = 700, .turns = {{1, 3, 10}, {2, 10, 300}, {3, 310, 690}}});
  const std::vector<IndexRange> expected = {{0, 3},     {3, 10},    {10, 266},  {266, 300},
                                            {300, 310}, {310, 566}, {566, 690}, {690, 700}};
  EXPECT_EQ(MakePlan(*segment).token_ranges, expected);
}

TEST(Codec, ChunksOpenInAnyOrderAndTheHeaderAloneSaysWhatItIs) {
  const auto segment = ExactSegment({.layers = 17, .tokens = 300, .turns = {{1, 0, 300}}});
  const EncodedSegment encoded = EncodeTest(*segment);
  auto decoder = Decoder::Open(base::AsBytes(encoded.header), encoded.id, TestKey(1)).value();
  EXPECT_EQ(decoder->info(), segment->info());
  EXPECT_EQ(decoder->geometry(), segment->geometry());
  ASSERT_EQ(decoder->chunk_count(), 6);
  for (const int index : {5, 0, 3, 1, 4}) {
    ASSERT_TRUE(decoder->AddChunk(index, base::AsBytes(encoded.chunks[index])).ok());
  }
  EXPECT_EQ(decoder->Finish(encoded.digest).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(decoder->AddChunk(4, base::AsBytes(encoded.chunks[4])).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoder->AddChunk(6, base::AsBytes(encoded.chunks[5])).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(decoder->AddChunk(2, base::AsBytes(encoded.chunks[2])).ok());
  EXPECT_TRUE(SameSegment(*decoder->Finish(encoded.digest).value(), *segment));
}

TEST(Codec, TwoEncodingsOfOneSegmentShareNoCiphertext) {
  const auto segment = ExactSegment({.tokens = 64});
  const EncodedSegment a = EncodeTest(*segment, 1);
  const EncodedSegment b = EncodeTest(*segment, 2);
  EXPECT_NE(a.digest, b.digest);
  EXPECT_NE(a.chunks[0], b.chunks[0]);
}

TEST(Codec, StoredBytesShowNothingOfTheContent) {
  TestShape shape = {.tokens = 64};
  SegmentInfo info = TestInfo(shape);
  info.build_id.text = "MARKER-IN-BUILD-ID";
  std::vector<HeadSlots> heads = ExactHeads(shape);
  const std::string marker = "MARKER-IN-KEYS";
  for (size_t i = 0; i < marker.size(); ++i) heads[0].keys[i] = std::byte(marker[i]);
  const auto segment = KvSegment::Create(TestGeometry(shape), info, heads).value();
  const EncodedSegment encoded = EncodeTest(*segment);
  EXPECT_EQ(encoded.header.find("MARKER"), std::string::npos);
  for (const std::string& chunk : encoded.chunks) {
    EXPECT_EQ(chunk.find("MARKER"), std::string::npos);
  }
}

TEST(Codec, StoredFormOfVersion1IsUnchanged) {
  // A change of this digest means that segments written before can not be read: raise kCodecVersion
  // and keep the old reader.
  EXPECT_EQ(EncodeTest(*ExactSegment({})).digest.Hex(),
            "9b2c03d3e68696b8d3041346ffd854b27018d472177ca080407c17c99efd218a");
  EXPECT_EQ(EncodeTest(*RaggedSegment({})).digest.Hex(),
            "67c293f4377da5434154840831013eab3a9ed04de92affea999fee462bf37f29");
}

}  // namespace
}  // namespace kvasir::kv
