// Codec under damage: flipped, cut, swapped and forged bytes give STATE_CORRUPT, never wrong data.
// Method: exhaustive over the bytes of small encoded segments; forged headers are sealed under the
// right key, so that the checks behind the seal are reached.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "engine/kv/codec.h"
#include "engine/kv/header.h"
#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

EncodedSegment EncodeAs(const KvSegment& segment, uint8_t id = 9, uint64_t seed = 1) {
  base::SeededEntropy entropy(seed);
  return Encode(segment, TestId(id), TestKey(1), entropy);
}

bool IsCorrupt(const base::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss && base::Reason(status) == "STATE_CORRUPT";
}

std::vector<EncodedSegment> SmallSegments() {
  return {EncodeAs(*ExactSegment({.layers = 9, .kv_heads = 1, .tokens = 3, .turns = {{1, 0, 2}}})),
          EncodeAs(*RaggedSegment({.tokens = 3}))};
}

TEST(CodecDamage, EveryFlippedByteIsFound) {
  for (const EncodedSegment& encoded : SmallSegments()) {
    for (size_t i = 0; i < encoded.header.size(); ++i) {
      EncodedSegment damaged = encoded;
      damaged.header[i] = static_cast<char>(damaged.header[i] ^ 0x41);
      const base::Status status = Decode(damaged, TestKey(1)).status();
      // Bytes 4 to 7 are the version: a greater one is a newer format, not damage.
      const bool version = i >= 4 && i < 8;
      EXPECT_TRUE(version ? status.code() == absl::StatusCode::kFailedPrecondition
                          : IsCorrupt(status))
          << "header byte " << i << ": " << status;
    }
    for (size_t c = 0; c < encoded.chunks.size(); ++c) {
      for (size_t i = 0; i < encoded.chunks[c].size(); ++i) {
        EncodedSegment damaged = encoded;
        damaged.chunks[c][i] = static_cast<char>(damaged.chunks[c][i] ^ 0x41);
        const base::Status status = Decode(damaged, TestKey(1)).status();
        EXPECT_TRUE(IsCorrupt(status)) << "chunk " << c << " byte " << i << ": " << status;
      }
    }
    for (size_t i = 0; i < encoded.digest.bytes.size(); ++i) {
      EncodedSegment damaged = encoded;
      damaged.digest.bytes[i] ^= 0x41;
      EXPECT_TRUE(IsCorrupt(Decode(damaged, TestKey(1)).status())) << "digest byte " << i;
    }
  }
}

TEST(CodecDamage, EveryTruncationAndExtensionIsFound) {
  for (const EncodedSegment& encoded : SmallSegments()) {
    for (size_t size = 0; size <= encoded.header.size() + 1; ++size) {
      if (size == encoded.header.size()) continue;
      EncodedSegment damaged = encoded;
      damaged.header.resize(size);
      EXPECT_TRUE(IsCorrupt(Decode(damaged, TestKey(1)).status())) << "header of " << size;
    }
    for (size_t size = 0; size <= encoded.chunks[0].size() + 1; ++size) {
      if (size == encoded.chunks[0].size()) continue;
      EncodedSegment damaged = encoded;
      damaged.chunks[0].resize(size);
      EXPECT_TRUE(IsCorrupt(Decode(damaged, TestKey(1)).status())) << "chunk of " << size;
    }
    EncodedSegment fewer = encoded;
    fewer.chunks.pop_back();
    EXPECT_TRUE(IsCorrupt(Decode(fewer, TestKey(1)).status()));
    EncodedSegment more = encoded;
    more.chunks.push_back(more.chunks[0]);
    EXPECT_TRUE(IsCorrupt(Decode(more, TestKey(1)).status()));
  }
}

TEST(CodecDamage, SwappedChunksAreFound) {
  const auto segment = ExactSegment({.tokens = 512});
  const EncodedSegment encoded = EncodeAs(*segment);
  ASSERT_EQ(encoded.chunks.size(), 2u);
  ASSERT_EQ(encoded.chunks[0].size(), encoded.chunks[1].size());
  EncodedSegment swapped = encoded;
  std::swap(swapped.chunks[0], swapped.chunks[1]);
  EXPECT_TRUE(IsCorrupt(Decode(swapped, TestKey(1)).status()));
}

TEST(CodecDamage, PartsOfAnotherRecordAreFound) {
  const auto segment = ExactSegment({.tokens = 64});
  const EncodedSegment encoded = EncodeAs(*segment, 9, 1);
  // The same content under another id, and under the same id with another salt.
  for (const EncodedSegment& other : {EncodeAs(*segment, 8, 1), EncodeAs(*segment, 9, 2)}) {
    EncodedSegment chunk = encoded;
    chunk.chunks[0] = other.chunks[0];
    EXPECT_TRUE(IsCorrupt(Decode(chunk, TestKey(1)).status()));
    EncodedSegment header = encoded;
    header.header = other.header;
    EXPECT_TRUE(IsCorrupt(Decode(header, TestKey(1)).status()));
    EncodedSegment digest = encoded;
    digest.digest = other.digest;
    EXPECT_TRUE(IsCorrupt(Decode(digest, TestKey(1)).status()));
  }
}

TEST(CodecDamage, WrongKeyAndWrongIdAreFound) {
  EncodedSegment encoded = EncodeAs(*ExactSegment({}));
  EXPECT_TRUE(IsCorrupt(Decode(encoded, TestKey(2)).status()));
  encoded.id = TestId(1);
  EXPECT_TRUE(IsCorrupt(Decode(encoded, TestKey(1)).status()));
}

TEST(CodecDamage, NewerVersionIsRefusedByBothNumbers) {
  EncodedSegment encoded = EncodeAs(*ExactSegment({}));
  encoded.header[4] = 2;
  const base::Status status = Decode(encoded, TestKey(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "segment of codec version 2, this program reads up to 1");
}

// A header that holds `plan` and opens under TestKey(1).
std::string ForgeHeader(const std::string& plan, uint32_t chunk_count) {
  const ClearHeader clear{.version = 1,
                          .id = TestId(9),
                          .salt = {},
                          .chunk_count = chunk_count,
                          .plan_bytes = static_cast<uint32_t>(plan.size())};
  std::string header = WriteClearHeader(clear);
  const std::string aad = header;
  header.resize(header.size() + plan.size() + kTagBytes);
  const RecordCipher::Bytes piece = base::AsBytes(plan);
  MakeSegmentCipher(TestKey(1), clear)
      .Seal(kHeaderNonce, base::AsBytes(aad), {&piece, 1},
            reinterpret_cast<uint8_t*>(header.data()) + kClearHeaderBytes);
  return header;
}

base::Status OpenForged(const std::string& plan, uint32_t chunk_count) {
  return Decoder::Open(base::AsBytes(ForgeHeader(plan, chunk_count)), TestId(9), TestKey(1))
      .status();
}

TEST(CodecDamage, ForgedPlansAreRefusedWhereverTheyLie) {
  using PlanMutation = std::function<void(SegmentPlan&)>;
  const std::vector<PlanMutation> mutations = {
      [](SegmentPlan& p) { p.info.tokens.clear(); },
      [](SegmentPlan& p) { p.info.first_position = INT64_MAX; },
      [](SegmentPlan& p) {
        p.info.turns = {{1, 0, 5}};
      },
      [](SegmentPlan& p) {
        p.info.turns = {{1, -1, 2}};
      },
      [](SegmentPlan& p) { p.info.element_type = ElementType{9}; },
      [](SegmentPlan& p) { p.geometry.layers[0].k_width = INT32_MAX; },
      [](SegmentPlan& p) { p.geometry.layers[0].kv_heads = INT32_MAX; },
      [](SegmentPlan& p) { p.geometry.layers[0].kv_heads = 3; },
      [](SegmentPlan& p) { p.geometry.layers[0].kind = StreamKind{5}; },
      [](SegmentPlan& p) { p.geometry.layers.clear(); },
      [](SegmentPlan& p) { p.heads[0].slots = INT32_MAX; },
      [](SegmentPlan& p) { p.heads[0].slots = -1; },
      [](SegmentPlan& p) { p.heads[0].slots = 3; },
      [](SegmentPlan& p) { p.heads[0].beta = true; },
      [](SegmentPlan& p) { p.heads[0].positions = true; },
      [](SegmentPlan& p) { p.heads.pop_back(); },
      [](SegmentPlan& p) { p.token_ranges.clear(); },
      [](SegmentPlan& p) { p.token_ranges[0].end = 3; },
      [](SegmentPlan& p) { p.token_ranges[0].end = 5; },
      [](SegmentPlan& p) { p.token_ranges[0].begin = INT32_MIN; },
      [](SegmentPlan& p) {
        p.token_ranges.push_back({4, 4});
      },
      [](SegmentPlan& p) { p.layer_groups[0].end = 1; },
      [](SegmentPlan& p) { p.layer_groups[0].end = INT32_MAX; },
      [](SegmentPlan& p) {
        p.exact = false;
        p.token_ranges = {{0, 2}, {2, 4}};
      },
  };
  const SegmentPlan plan = MakePlan(*ExactSegment({}));
  ASSERT_TRUE(OpenForged(WritePlan(plan), 1).ok());
  EXPECT_TRUE(IsCorrupt(OpenForged(WritePlan(plan), 2)));
  for (size_t i = 0; i < mutations.size(); ++i) {
    SegmentPlan forged = plan;
    mutations[i](forged);
    const base::Status status = OpenForged(WritePlan(forged), 1);
    EXPECT_TRUE(IsCorrupt(status)) << i << ": " << status;
  }
}

TEST(CodecDamage, PlansWithAnyByteChangedNeverCrash) {
  for (const auto& segment : {ExactSegment({.tokens = 2}), RaggedSegment({.tokens = 3})}) {
    const std::string plan = WritePlan(MakePlan(*segment));
    for (size_t i = 0; i < plan.size(); ++i) {
      for (const int value : {0, 1, 127, 128, 255}) {
        std::string changed = plan;
        changed[i] = static_cast<char>(value);
        const auto parsed = ParsePlan(base::AsBytes(changed));
        EXPECT_TRUE(parsed.ok() || IsCorrupt(parsed.status())) << i;
      }
      EXPECT_TRUE(IsCorrupt(ParsePlan(base::AsBytes(plan).first(i)).status())) << i;
    }
  }
}

TEST(CodecDamage, HugeCountsInAShortHeaderAreRefusedBeforeAllocation) {
  const std::string plan = WritePlan(MakePlan(*ExactSegment({})));
  // The token count stands after three digests, position, type, and build_id.
  const size_t build_bytes = TestInfo({}).build_id.text.size();
  const size_t count_at = 3 * 32 + 8 + 1 + 2 + build_bytes;
  for (const uint32_t count : {5u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    std::string forged = plan;
    std::memcpy(forged.data() + count_at, &count, 4);
    EXPECT_TRUE(IsCorrupt(OpenForged(forged, 1))) << count;
  }
}

}  // namespace
}  // namespace kvasir::kv
