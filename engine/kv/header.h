// SegmentPlan: what a segment's header says: everything but the arrays, and how the arrays are cut
// into chunks. Internal to the codec; the byte tables are in docs/formats.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kv/codec.h"
#include "engine/kv/segment.h"

namespace kvasir::kv {

// [begin, end)
struct IndexRange {
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const IndexRange&) const = default;
};

// Which arrays a head has.
struct HeadShape {
  int32_t slots = 0;
  bool beta = false;
  bool positions = false;
  bool operator==(const HeadShape&) const = default;
};

struct SegmentPlan {
  Geometry geometry;
  SegmentInfo info;
  bool exact = false;
  std::vector<HeadShape> heads;          // layer-major
  std::vector<IndexRange> token_ranges;  // cover the tokens; one when not exact
  std::vector<IndexRange> layer_groups;  // cover the layers

  // Chunk index = group * token_ranges + range: a group's layers are whole before the next begins.
  int64_t chunk_count() const {
    return static_cast<int64_t>(token_ranges.size()) * static_cast<int64_t>(layer_groups.size());
  }
  const IndexRange& chunk_tokens(int64_t chunk) const {
    return token_ranges[chunk % token_ranges.size()];
  }
  const IndexRange& chunk_layers(int64_t chunk) const {
    return layer_groups[chunk / token_ranges.size()];
  }
  // Slots of `head` that stand in a chunk of `tokens`.
  int32_t chunk_slots(const HeadShape& head, const IndexRange& tokens) const {
    return exact ? tokens.end - tokens.begin : head.slots;
  }
  // Bytes of a chunk before sealing.
  uint64_t ChunkBytes(int64_t chunk) const;
  // Index in `heads` of the first head of `layer`.
  size_t FirstHead(int layer) const;
};

SegmentPlan MakePlan(const KvSegment& segment);

// The part of the header that is sealed.
std::string WritePlan(const SegmentPlan& plan);
// Errors: DataLoss reason STATE_CORRUPT (says what is wrong where). Allocates no more than a small
// multiple of bytes.size().
base::StatusOr<SegmentPlan> ParsePlan(std::span<const uint8_t> bytes);

// The part of the header in clear.
inline constexpr size_t kClearHeaderBytes = 48;
inline constexpr uint32_t kHeaderNonce = 0xFFFFFFFF;
struct ClearHeader {
  uint32_t version = 0;
  SegmentId id{};
  std::array<uint8_t, kSaltBytes> salt{};
  uint32_t chunk_count = 0;
  uint32_t plan_bytes = 0;
};
std::string WriteClearHeader(const ClearHeader& header);
// Checks magic, version and that `header` has exactly the bytes it announces.
// Errors: DataLoss reason STATE_CORRUPT, FailedPrecondition (newer version).
base::StatusOr<ClearHeader> ParseClearHeader(std::span<const uint8_t> header);

RecordCipher MakeSegmentCipher(const DataKey& key, const ClearHeader& header);
// Additional data of chunk `index`.
std::string ChunkAad(const SegmentId& id, uint32_t index, uint32_t count,
                     const base::Digest& header_digest);
// EncodedSegment::digest; `tags` are the chunks' tags, in order.
base::Digest SegmentDigest(const base::Digest& header_digest, std::span<const uint8_t> tags);

template <typename... Args>
base::Status Corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return base::WithReason(base::DataLoss(format, std::forward<Args>(args)...), "STATE_CORRUPT");
}

}  // namespace kvasir::kv
