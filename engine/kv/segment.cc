#include "engine/kv/segment.h"

#include <cmath>
#include <limits>

namespace kvasir::kv {
namespace {

std::span<const uint8_t> Raw(const auto& array) {
  return {reinterpret_cast<const uint8_t*>(array.data()), array.size() * sizeof(array[0])};
}

// One head of a segment that is being made.
struct HeadCheck {
  int layer;
  int kv_head;
  const Stream& stream;
  const SegmentInfo& info;
};

base::Status CheckArray(const HeadCheck& at, const char* what, size_t have, size_t want) {
  if (have == want) return base::OkStatus();
  return base::InvalidArgument("layer {} head {}: {} has {} bytes, {} expected", at.layer,
                               at.kv_head, what, have, want);
}

base::Status CheckPositions(const HeadCheck& at, const std::vector<int32_t>& positions) {
  const int64_t end = at.info.first_position + static_cast<int64_t>(at.info.tokens.size());
  int64_t previous = at.info.first_position - 1;
  for (const int32_t position : positions) {
    if (position <= previous || position >= end) {
      return base::InvalidArgument(
          "layer {} head {}: position {} after {}; positions ascend within [{}, {})", at.layer,
          at.kv_head, position, previous, at.info.first_position, end);
    }
    previous = position;
  }
  return base::OkStatus();
}

base::Status CheckHead(const HeadCheck& at, const HeadSlots& head) {
  if (head.slots < 0 || static_cast<size_t>(head.slots) > at.info.tokens.size()) {
    return base::InvalidArgument("layer {} head {}: {} slots for {} tokens", at.layer, at.kv_head,
                                 head.slots, at.info.tokens.size());
  }
  const size_t slots = static_cast<size_t>(head.slots);
  const size_t element = ElementBytes(at.info.element_type);
  KVASIR_RETURN_IF_ERROR(
      CheckArray(at, "keys", head.keys.size(), slots * at.stream.k_width * element));
  KVASIR_RETURN_IF_ERROR(
      CheckArray(at, "values", head.values.size(), slots * at.stream.v_width * element));
  if (!head.beta.empty()) {
    KVASIR_RETURN_IF_ERROR(CheckArray(at, "beta", head.beta.size() * 4, slots * 4));
  }
  for (const float beta : head.beta) {
    if (std::isnan(beta) || beta == std::numeric_limits<float>::infinity()) {
      return base::InvalidArgument("layer {} head {}: beta is {}", at.layer, at.kv_head, beta);
    }
  }
  if (head.positions.empty()) return base::OkStatus();
  KVASIR_RETURN_IF_ERROR(CheckArray(at, "positions", head.positions.size() * 4, slots * 4));
  return CheckPositions(at, head.positions);
}

// Strictly ascending positions inside the logical range are consecutive from its start exactly when
// the last one is.
bool Consecutive(const HeadSlots& head, int64_t first_position) {
  return head.positions.empty() || head.positions.back() == first_position + head.slots - 1;
}

}  // namespace

base::Status ValidateInfo(const SegmentInfo& info) {
  const size_t tokens = info.tokens.size();
  if (tokens == 0 || tokens > kSegmentTokensMax) {
    return base::InvalidArgument("segment of {} tokens, allowed are 1 to {}", tokens,
                                 kSegmentTokensMax);
  }
  if (info.first_position < 0 ||
      info.first_position > int64_t{INT32_MAX} - static_cast<int64_t>(tokens)) {
    return base::InvalidArgument("first position {} with {} tokens, positions end at {}",
                                 info.first_position, tokens, INT32_MAX);
  }
  if (info.build_id.text.size() > kBuildIdBytesMax) {
    return base::InvalidArgument("build_id of {} bytes, at most {}", info.build_id.text.size(),
                                 kBuildIdBytesMax);
  }
  if (info.element_type != ElementType::kF16 && info.element_type != ElementType::kF32) {
    return base::InvalidArgument("element type {} is unknown", static_cast<int>(info.element_type));
  }
  int32_t previous_end = 0;
  for (size_t i = 0; i < info.turns.size(); ++i) {
    const TurnRange& turn = info.turns[i];
    if (turn.begin < previous_end || turn.end <= turn.begin ||
        static_cast<size_t>(turn.end) > tokens) {
      return base::InvalidArgument("turn range {} is [{}, {}) after {}, of {} tokens", i,
                                   turn.begin, turn.end, previous_end, tokens);
    }
    previous_end = turn.end;
  }
  return base::OkStatus();
}

base::StatusOr<std::shared_ptr<const KvSegment>> KvSegment::Create(Geometry geometry,
                                                                   SegmentInfo info,
                                                                   std::vector<HeadSlots> heads) {
  KVASIR_RETURN_IF_ERROR(geometry.Validate());
  KVASIR_RETURN_IF_ERROR(ValidateInfo(info));
  std::shared_ptr<KvSegment> segment(new KvSegment);
  size_t next = 0;
  for (const Stream& stream : geometry.layers) {
    segment->first_head_.push_back(next);
    next += static_cast<size_t>(stream.kv_heads);
  }
  if (heads.size() != next) {
    return base::InvalidArgument("{} heads given, the geometry has {}", heads.size(), next);
  }
  bool exact = true;
  for (size_t layer = 0; layer < geometry.layers.size(); ++layer) {
    const Stream& stream = geometry.layers[layer];
    for (int kv_head = 0; kv_head < stream.kv_heads; ++kv_head) {
      HeadSlots& head = heads[segment->first_head_[layer] + kv_head];
      KVASIR_RETURN_IF_ERROR(CheckHead({static_cast<int>(layer), kv_head, stream, info}, head));
      if (Consecutive(head, info.first_position)) head.positions = {};
      exact &= static_cast<size_t>(head.slots) == info.tokens.size() && head.beta.empty();
      segment->bytes_ +=
          head.keys.size() + head.values.size() + 4 * head.beta.size() + 4 * head.positions.size();
    }
  }
  if (segment->bytes_ > kSegmentBytesMax) {
    return base::InvalidArgument("segment of {} bytes, at most {}", segment->bytes_,
                                 kSegmentBytesMax);
  }
  segment->geometry_ = std::move(geometry);
  segment->info_ = std::move(info);
  segment->heads_ = std::move(heads);
  segment->exact_ = exact;
  return std::shared_ptr<const KvSegment>(std::move(segment));
}

base::Digest KvSegment::ContentDigest() const {
  base::Hasher hasher;
  hasher.AddText("kvasir segment content 1");
  hasher.Add(geometry_.Digest().bytes);
  hasher.Add(info_.model_id.digest.bytes);
  hasher.AddText(info_.build_id.text);
  hasher.Add(info_.context_id.bytes);
  hasher.Add(info_.parent_id.bytes);
  hasher.AddInt(info_.first_position);
  hasher.AddInt(static_cast<int>(info_.element_type));
  const auto add = [&hasher](const auto& array) {
    hasher.AddInt(static_cast<int64_t>(array.size()));
    if (!array.empty()) hasher.Add(Raw(array));
  };
  add(info_.tokens);
  hasher.AddInt(static_cast<int64_t>(info_.turns.size()));
  for (const TurnRange& turn : info_.turns) {
    for (const int64_t number : {turn.turn, int64_t{turn.begin}, int64_t{turn.end}}) {
      hasher.AddInt(number);
    }
  }
  for (const HeadSlots& head : heads_) {
    hasher.AddInt(head.slots);
    add(head.keys);
    add(head.values);
    add(head.beta);
    add(head.positions);
  }
  return hasher.Finish();
}

}  // namespace kvasir::kv
