// Slice and Join: Join(slices) is the whole, for every way to cut; broken chains are refused.
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

using SegmentPtr = std::shared_ptr<const KvSegment>;

// The chain of `segment` before its token `at`.
base::Digest ChainAt(const KvSegment& segment, int32_t at) {
  ContextChain chain(segment.info().model_id);
  chain.AddTokens(segment.info().first_position, std::span(segment.info().tokens).first(at));
  return chain.id();
}

SegmentPtr Cut(const KvSegment& segment, int32_t begin, int32_t end) {
  return Slice(segment, begin, end, ChainAt(segment, begin), ChainAt(segment, end));
}

// Cuts at every i < tokens − 1 whose bit is set in `mask`.
std::vector<SegmentPtr> CutAll(const KvSegment& segment, uint32_t mask) {
  std::vector<SegmentPtr> parts;
  int32_t begin = 0;
  const auto tokens = static_cast<int32_t>(segment.logical_tokens());
  for (int32_t i = 1; i <= tokens; ++i) {
    if (i < tokens && (mask >> (i - 1) & 1) == 0) continue;
    parts.push_back(Cut(segment, begin, i));
    begin = i;
  }
  return parts;
}

const TestShape kCutShape = {.tokens = 7, .turns = {{1, 0, 2}, {2, 2, 3}, {4, 4, 7}}};

TEST(SliceAndJoin, JoinOfTheSlicesIsTheWholeForEveryCut) {
  for (const ElementType type : {ElementType::kF16, ElementType::kF32}) {
    TestShape shape = kCutShape;
    shape.type = type;
    const SegmentPtr whole = ExactSegment(shape);
    for (uint32_t mask = 0; mask < 64; ++mask) {
      const auto joined = Join(CutAll(*whole, mask));
      ASSERT_TRUE(joined.ok()) << mask << ": " << joined.status();
      ASSERT_TRUE(SameSegment(**joined, *whole)) << mask;
      ASSERT_EQ((*joined)->ContentDigest(), whole->ContentDigest()) << mask;
    }
  }
}

TEST(SliceAndJoin, SliceKeepsTokensTurnsAndPositions) {
  const SegmentPtr part = Cut(*ExactSegment(kCutShape), 1, 5);
  EXPECT_EQ(part->info().first_position, kCutShape.first_position + 1);
  EXPECT_EQ(part->info().tokens, (std::vector<int32_t>{31, 62, 93, 124}));
  EXPECT_EQ(part->info().turns, (std::vector<TurnRange>{{1, 0, 1}, {2, 1, 2}, {4, 3, 4}}));
  EXPECT_TRUE(part->exact());
  EXPECT_EQ(part->head(1, 1).keys.size(), 4u * 6 * 2);
}

struct Broken {
  std::string message;
  std::vector<SegmentPtr> parts;
};

TEST(SliceAndJoin, JoinRefusesWhatDoesNotFollowAndNamesThePart) {
  const SegmentPtr whole = ExactSegment(kCutShape);
  const SegmentPtr a = Cut(*whole, 0, 2);
  const SegmentPtr b = Cut(*whole, 2, 4);
  const SegmentPtr c = Cut(*whole, 4, 7);
  TestShape f32 = kCutShape;
  f32.type = ElementType::kF32;
  TestShape wide = kCutShape;
  wide.v_width += 1;
  const base::Digest elsewhere = base::Sha256(base::AsBytes("elsewhere"));
  const std::vector<Broken> cases = {
      {"no parts", {}},
      {"part 1 begins at position 11, part 0 ends at 9", {a, c}},
      {"part 1 begins at position 7, part 0 ends at 11", {b, a}},
      {"part 1 begins at position 7, part 0 ends at 9", {a, a}},
      {"part 2 follows context", {a, b, Slice(*whole, 4, 7, elsewhere, ChainAt(*whole, 7))}},
      {"part 0 is not exact", {RaggedSegment(kCutShape)}},
      {"part 1 is of another model", {a, Cut(*ExactSegment(f32), 2, 4)}},
      {"part 1 is of another model", {a, Cut(*ExactSegment(wide), 2, 4)}},
  };
  for (const Broken& broken : cases) {
    const auto joined = Join(broken.parts);
    ASSERT_EQ(joined.status().code(), absl::StatusCode::kInvalidArgument) << broken.message;
    EXPECT_NE(joined.status().message().find(broken.message), std::string::npos) << joined.status();
  }
}

}  // namespace
}  // namespace kvasir::kv
