// KvSegment: an immutable attention state; the unit that is stored, shared, shipped and mounted.
//
// Per (layer, KV head), *ragged*: n slots of un-rotated keys and values, optionally beta, and each
// slot's local position. An exact segment has one slot per token at consecutive local positions and
// no beta. Local positions are those of the context it was built in. Memory: owns its arrays
// (host). Threads: immutable once built; share by shared_ptr<const KvSegment>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kv/geometry.h"
#include "engine/kv/identity.h"

namespace kvasir::kv {

inline constexpr size_t kSegmentTokensMax = size_t{1} << 21;
inline constexpr size_t kSegmentBytesMax = size_t{1} << 35;
inline constexpr size_t kBuildIdBytesMax = 1024;

enum class ElementType : uint8_t { kF16 = 0, kF32 = 1 };
inline constexpr int ElementBytes(ElementType type) { return type == ElementType::kF16 ? 2 : 4; }

// The slots of one (layer, KV head).
struct HeadSlots {
  int32_t slots = 0;
  std::vector<std::byte> keys;    // [slots, k_width] ElementType, before rotation
  std::vector<std::byte> values;  // [slots, v_width] ElementType
  std::vector<float> beta;        // [slots], or empty
  // [slots] local positions, strictly ascending; or empty: first_position + i.
  std::vector<int32_t> positions;

  bool operator==(const HeadSlots&) const = default;
};

// Tokens [begin, end) of the segment (indices from 0) belong to one turn.
struct TurnRange {
  int64_t turn = 0;  // number of the turn in its session
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const TurnRange&) const = default;
};

// What a segment says of itself besides its arrays.
struct SegmentInfo {
  ModelId model_id;
  BuildId build_id;
  base::Digest context_id;       // ContextChain after the last token
  base::Digest parent_id;        // ContextChain before the first token
  int64_t first_position = 0;    // local position of the first token
  std::vector<int32_t> tokens;   // ids of the logical tokens, in order; size = logical length
  std::vector<TurnRange> turns;  // ascending, disjoint
  ElementType element_type = ElementType::kF16;
  bool operator==(const SegmentInfo&) const = default;
};

// Errors: InvalidArgument (no tokens or more than kSegmentTokensMax; positions past 2^31; turn
// ranges not ascending, empty or outside the tokens; build_id too long; unknown element type).
base::Status ValidateInfo(const SegmentInfo& info);

class KvSegment {
 public:
  // Takes the arrays. `heads` is layer-major: heads[layer_first_head + kv_head]. Positions that are
  // first_position + i are dropped, so that equal states are equal objects.
  // Errors: InvalidArgument (geometry or info not valid; an array's size does not follow from
  // geometry and slots; more slots than tokens; positions not strictly ascending or outside the
  // logical range; beta NaN or +infinity; over kSegmentBytesMax; names layer and head).
  static base::StatusOr<std::shared_ptr<const KvSegment>> Create(Geometry geometry,
                                                                 SegmentInfo info,
                                                                 std::vector<HeadSlots> heads);

  const Geometry& geometry() const { return geometry_; }
  const SegmentInfo& info() const { return info_; }
  int64_t logical_tokens() const { return static_cast<int64_t>(info_.tokens.size()); }
  const HeadSlots& head(int layer, int kv_head) const {
    return heads_[first_head_[layer] + kv_head];
  }
  // True when every head has one slot per token, without beta.
  bool exact() const { return exact_; }
  // Bytes of all arrays.
  size_t bytes() const { return bytes_; }
  // Digest over geometry, info and every array: equal digests, equal attention.
  base::Digest ContentDigest() const;

 private:
  KvSegment() = default;
  Geometry geometry_;
  SegmentInfo info_;
  std::vector<HeadSlots> heads_;
  std::vector<size_t> first_head_;
  size_t bytes_ = 0;
  bool exact_ = false;
};

// Tokens [begin, end) of an exact segment as a segment of its own (copies). `parent_id` and
// `context_id` are the chain at the cut. REQUIRES: exact, 0 ≤ begin < end ≤ logical_tokens.
std::shared_ptr<const KvSegment> Slice(const KvSegment& segment, int32_t begin, int32_t end,
                                       const base::Digest& parent_id,
                                       const base::Digest& context_id);

// Exact segments that follow each other without a gap (first_position and parent_id chain) as one.
// A turn cut at a seam becomes one range again. build_id is the first part's: where parts differ,
// the whole counts as made by the earliest build. Errors: InvalidArgument (empty list, not exact,
// different model, gap, broken chain; names the index).
base::StatusOr<std::shared_ptr<const KvSegment>> Join(
    std::span<const std::shared_ptr<const KvSegment>> parts);

}  // namespace kvasir::kv
