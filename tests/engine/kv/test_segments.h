// Segments with pseudo-random content for the tests of kv: pure functions of the arguments.
#pragma once

#include <memory>
#include <vector>

#include "engine/kv/codec.h"
#include "engine/kv/segment.h"

namespace kvasir::kv {

struct TestShape {
  int layers = 2;
  int kv_heads = 2;
  int k_width = 6;  // not a multiple of anything the cipher likes
  int v_width = 10;
  int tokens = 4;
  int64_t first_position = 7;
  ElementType type = ElementType::kF16;
  std::vector<TurnRange> turns = {};
  uint64_t seed = 1;
};

Geometry TestGeometry(const TestShape& shape);
SegmentInfo TestInfo(const TestShape& shape);
// Heads with one slot a token, no beta.
std::vector<HeadSlots> ExactHeads(const TestShape& shape);
// Heads of differing slot counts (0 to tokens) with positions; every second one with beta.
std::vector<HeadSlots> RaggedHeads(const TestShape& shape);
std::shared_ptr<const KvSegment> ExactSegment(const TestShape& shape);
std::shared_ptr<const KvSegment> RaggedSegment(const TestShape& shape);

// Equal in everything the public interface shows.
bool SameSegment(const KvSegment& a, const KvSegment& b);

DataKey TestKey(uint8_t fill);
SegmentId TestId(uint8_t fill);

}  // namespace kvasir::kv
