// KvSegment: what Create refuses, and that the content digest covers everything attention reads.
// Method: from one valid segment, change one thing at a time.
#include "engine/kv/segment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

struct Parts {
  Geometry geometry;
  SegmentInfo info;
  std::vector<HeadSlots> heads;
};
using Mutation = std::function<void(Parts&)>;

const TestShape kShape = {.tokens = 6, .turns = {{1, 0, 2}, {2, 3, 6}}};

Parts RaggedParts() { return {TestGeometry(kShape), TestInfo(kShape), RaggedHeads(kShape)}; }

base::StatusOr<std::shared_ptr<const KvSegment>> CreateFrom(Parts parts) {
  return KvSegment::Create(std::move(parts.geometry), std::move(parts.info),
                           std::move(parts.heads));
}

struct BadCase {
  std::string message;  // part of what the error must say
  Mutation mutate;
};

std::vector<BadCase> BadCases() {
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      {"0 layers", [](Parts& p) { p.geometry.layers.clear(); }},
      {"layer 1: kv_heads is 0", [](Parts& p) { p.geometry.layers[1].kv_heads = 0; }},
      {"layer 0: k_width is -1", [](Parts& p) { p.geometry.layers[0].k_width = -1; }},
      {"layer 0: v_width is 2147483647",
       [](Parts& p) { p.geometry.layers[0].v_width = INT32_MAX; }},
      {"layer 0: rotated is 8", [](Parts& p) { p.geometry.layers[0].rotated = 8; }},
      {"layer 0: rotated is 3", [](Parts& p) { p.geometry.layers[0].rotated = 3; }},
      {"layer 0: rope is 2", [](Parts& p) { p.geometry.layers[0].rope = 2; }},
      {"layer 0: rope is -1", [](Parts& p) { p.geometry.layers[0].rope = -1; }},
      {"layer 0: window is 4", [](Parts& p) { p.geometry.layers[0].window = 4; }},
      {"layer 1: window is 0", [](Parts& p) { p.geometry.layers[1].window = 0; }},
      {"layer 0: kind is 7", [](Parts& p) { p.geometry.layers[0].kind = StreamKind{7}; }},
      {"2 RoPE factors for 2", [](Parts& p) { p.geometry.layers[0].rotated = 2; }},
      {"base is nan", [](Parts& p) { p.geometry.ropes[0].base = std::nan(""); }},
      {"scale is 0", [](Parts& p) { p.geometry.ropes[1].scale = 0; }},
      {"segment of 0 tokens", [](Parts& p) { p.info.tokens.clear(); }},
      {"first position -1", [](Parts& p) { p.info.first_position = -1; }},
      {"first position 2147483647", [](Parts& p) { p.info.first_position = INT32_MAX; }},
      {"turn range 0 is [0, 0)", [](Parts& p) { p.info.turns[0].end = 0; }},
      {"turn range 1 is [1, 6)", [](Parts& p) { p.info.turns[1].begin = 1; }},
      {"turn range 1 is [3, 7)", [](Parts& p) { p.info.turns[1].end = 7; }},
      {"build_id of 1025", [](Parts& p) { p.info.build_id.text.resize(1025); }},
      {"element type 2", [](Parts& p) { p.info.element_type = ElementType{2}; }},
      {"3 heads given, the geometry has 4", [](Parts& p) { p.heads.pop_back(); }},
      {"layer 0 head 0: 7 slots for 6", [](Parts& p) { p.heads[0].slots = 7; }},
      {"layer 0 head 1: -1 slots", [](Parts& p) { p.heads[1].slots = -1; }},
      {"layer 1 head 0: keys has", [](Parts& p) { p.heads[2].keys.pop_back(); }},
      {"layer 1 head 1: values has", [](Parts& p) { p.heads[3].values.push_back({}); }},
      {"layer 1 head 0: beta has", [](Parts& p) { p.heads[2].beta.push_back(0); }},
      {"beta is nan", [](Parts& p) { p.heads[2].beta[1] = std::nanf(""); }},
      {"beta is inf", [infinity](Parts& p) { p.heads[2].beta[1] = infinity; }},
      {"layer 1 head 0: positions has", [](Parts& p) { p.heads[2].positions.pop_back(); }},
      {"position 13 after 11", [](Parts& p) { p.heads[2].positions[1] = 13; }},
      {"position 11 after 11", [](Parts& p) { p.heads[2].positions[1] = 11; }},
      {"position 6 after 6", [](Parts& p) { p.heads[2].positions[0] = 6; }},
  };
}

TEST(KvSegment, CreateRefusesEveryInconsistencyAndNamesIt) {
  ASSERT_TRUE(CreateFrom(RaggedParts()).ok()) << CreateFrom(RaggedParts()).status();
  for (const BadCase& bad : BadCases()) {
    Parts parts = RaggedParts();
    bad.mutate(parts);
    const auto segment = CreateFrom(std::move(parts));
    ASSERT_EQ(segment.status().code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_NE(segment.status().message().find(bad.message), std::string::npos)
        << bad.message << " / " << segment.status();
  }
}

TEST(KvSegment, DigestCoversEverythingAttentionReads) {
  const std::vector<Mutation> mutations = {
      [](Parts&) {},
      [](Parts& p) { p.info.model_id.digest.bytes[31] ^= 1; },
      [](Parts& p) { p.info.build_id.text += "x"; },
      [](Parts& p) { p.info.context_id.bytes[0] ^= 1; },
      [](Parts& p) { p.info.parent_id.bytes[0] ^= 1; },
      [](Parts& p) { p.info.tokens[5] += 1; },
      [](Parts& p) { p.info.turns[0].turn += 1; },
      [](Parts& p) { p.info.turns[0].end -= 1; },
      [](Parts& p) { p.info.turns[1].begin += 1; },
      [](Parts& p) { p.info.turns.pop_back(); },
      [](Parts& p) { p.heads[0].keys[0] ^= std::byte{1}; },
      [](Parts& p) { p.heads[3].keys.back() ^= std::byte{128}; },
      [](Parts& p) { p.heads[0].values[0] ^= std::byte{1}; },
      [](Parts& p) { p.heads[3].values.back() ^= std::byte{128}; },
      [](Parts& p) { p.heads[2].beta[1] += 1; },
      [](Parts& p) { p.heads[2].beta.clear(); },
      [](Parts& p) { p.heads[2].positions[0] -= 1; },
      [](Parts& p) { p.heads[2].positions.clear(); },
      [](Parts& p) { p.heads[3] = HeadSlots{}; },
      [](Parts& p) { p.geometry.ropes[0].base += 1; },
      [](Parts& p) { p.geometry.layers[1].window += 1; },
      [](Parts& p) { p.geometry.layers[0].rotated = 0; },
  };
  std::set<base::Digest> digests;
  for (size_t i = 0; i < mutations.size(); ++i) {
    Parts parts = RaggedParts();
    mutations[i](parts);
    const auto segment = CreateFrom(std::move(parts));
    ASSERT_TRUE(segment.ok()) << i << ": " << segment.status();
    EXPECT_TRUE(digests.insert((*segment)->ContentDigest()).second) << i;
  }
}

TEST(KvSegment, FirstPositionAndElementTypeChangeTheDigest) {
  const TestShape moved = {.tokens = 4, .first_position = 8};
  Parts f32 = {TestGeometry({}), TestInfo({}), ExactHeads({.type = ElementType::kF32})};
  f32.info.element_type = ElementType::kF32;
  Parts f16 = {TestGeometry({}), TestInfo({}), ExactHeads({})};
  Parts shifted = f16;
  shifted.info.first_position = moved.first_position;
  const std::set<base::Digest> digests = {CreateFrom(f16).value()->ContentDigest(),
                                          CreateFrom(f32).value()->ContentDigest(),
                                          CreateFrom(shifted).value()->ContentDigest()};
  EXPECT_EQ(digests.size(), 3u);
}

TEST(KvSegment, ConsecutivePositionsAreTheSameAsNone) {
  Parts parts = {TestGeometry(kShape), TestInfo(kShape), ExactHeads(kShape)};
  const auto without = CreateFrom(parts);
  for (HeadSlots& head : parts.heads) {
    for (int32_t i = 0; i < head.slots; ++i) head.positions.push_back(7 + i);
  }
  const auto with = CreateFrom(parts);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_TRUE((*with)->exact());
  EXPECT_TRUE(SameSegment(**with, **without));
  EXPECT_EQ((*with)->ContentDigest(), (*without)->ContentDigest());
}

TEST(KvSegment, ExactMeansOneSlotATokenWithoutBeta) {
  EXPECT_TRUE(ExactSegment(kShape)->exact());
  EXPECT_FALSE(RaggedSegment(kShape)->exact());
  Parts parts = {TestGeometry(kShape), TestInfo(kShape), ExactHeads(kShape)};
  parts.heads[1].beta.assign(6, 0.0f);
  EXPECT_FALSE(CreateFrom(parts).value()->exact());
}

TEST(KvSegment, BytesAreThoseOfAllArrays) {
  // 4 heads × 6 tokens × (6 + 10) elements × 2 bytes
  EXPECT_EQ(ExactSegment(kShape)->bytes(), 4u * 6 * 16 * 2);
  EXPECT_EQ(TestGeometry(kShape).TokenBytes(2), 4 * 16 * 2);
}

}  // namespace
}  // namespace kvasir::kv
