#include "engine/kv/header.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/wire.h"

namespace kvasir::kv {
namespace {

constexpr std::string_view kMagic = "KVSG";
constexpr uint8_t kFlagBeta = 1;
constexpr uint8_t kFlagPositions = 2;
constexpr size_t kLayerBytes = 25;
constexpr size_t kRopeBytes = 21;  // without factors
constexpr size_t kTurnBytes = 16;
constexpr size_t kHeadBytes = 5;
constexpr size_t kRangeBytes = 8;

void PutGeometry(WireWriter& out, const Geometry& geometry) {
  out.Put(static_cast<uint16_t>(geometry.ropes.size()));
  for (const RopeKind& rope : geometry.ropes) {
    out.Put(static_cast<uint8_t>(rope.interleaved));
    out.Put(rope.base);
    out.Put(rope.scale);
    out.Put(static_cast<uint32_t>(rope.factors.size()));
    for (const float factor : rope.factors) out.Put(factor);
  }
  out.Put(static_cast<uint16_t>(geometry.layers.size()));
  for (const Stream& stream : geometry.layers) {
    out.Put(static_cast<uint8_t>(stream.kind));
    for (const int32_t number : {stream.kv_heads, stream.k_width, stream.v_width, stream.rotated,
                                 stream.rope, stream.window}) {
      out.Put(number);
    }
  }
}

void PutRanges(WireWriter& out, const std::vector<IndexRange>& ranges) {
  out.Put(static_cast<uint32_t>(ranges.size()));
  for (const IndexRange& range : ranges) {
    out.Put(range.begin);
    out.Put(range.end);
  }
}

Geometry GetGeometry(WireReader& in) {
  Geometry geometry;
  const auto ropes = in.Get<uint16_t>();
  if (!in.Has(ropes, kRopeBytes)) return geometry;
  for (int i = 0; i < ropes && in.ok(); ++i) {
    RopeKind& rope = geometry.ropes.emplace_back();
    rope.interleaved = in.Get<uint8_t>() != 0;
    rope.base = in.Get<double>();
    rope.scale = in.Get<double>();
    const auto factors = in.Get<uint32_t>();
    if (!in.Has(factors, 4)) return geometry;
    rope.factors.resize(factors);
    for (float& factor : rope.factors) factor = in.Get<float>();
  }
  const auto layers = in.Get<uint16_t>();
  if (!in.Has(layers, kLayerBytes)) return geometry;
  for (int i = 0; i < layers; ++i) {
    Stream& stream = geometry.layers.emplace_back();
    stream.kind = static_cast<StreamKind>(in.Get<uint8_t>());
    for (int32_t* number : {&stream.kv_heads, &stream.k_width, &stream.v_width, &stream.rotated,
                            &stream.rope, &stream.window}) {
      *number = in.Get<int32_t>();
    }
  }
  return geometry;
}

SegmentInfo GetInfo(WireReader& in) {
  SegmentInfo info;
  in.GetBytes(info.model_id.digest.bytes);
  in.GetBytes(info.context_id.bytes);
  in.GetBytes(info.parent_id.bytes);
  info.first_position = in.Get<int64_t>();
  info.element_type = static_cast<ElementType>(in.Get<uint8_t>());
  const auto build_bytes = in.Get<uint16_t>();
  if (!in.Has(build_bytes, 1)) return info;
  info.build_id.text.resize(build_bytes);
  in.GetBytes({reinterpret_cast<uint8_t*>(info.build_id.text.data()), build_bytes});
  const auto tokens = in.Get<uint32_t>();
  if (!in.Has(tokens, 4)) return info;
  info.tokens.resize(tokens);
  for (int32_t& token : info.tokens) token = in.Get<int32_t>();
  const auto turns = in.Get<uint32_t>();
  if (!in.Has(turns, kTurnBytes)) return info;
  info.turns.resize(turns);
  for (TurnRange& turn : info.turns) {
    turn.turn = in.Get<int64_t>();
    turn.begin = in.Get<int32_t>();
    turn.end = in.Get<int32_t>();
  }
  return info;
}

std::vector<IndexRange> GetRanges(WireReader& in) {
  const auto count = in.Get<uint32_t>();
  if (!in.Has(count, kRangeBytes)) return {};
  std::vector<IndexRange> ranges(count);
  for (IndexRange& range : ranges) {
    range.begin = in.Get<int32_t>();
    range.end = in.Get<int32_t>();
  }
  return ranges;
}

// The ranges follow each other from 0 to `end`, each of 1 to `size_max`.
base::Status CheckRanges(const char* what, const std::vector<IndexRange>& ranges, int64_t end,
                         int64_t size_max) {
  int64_t next = 0;
  for (const IndexRange& range : ranges) {
    const int64_t size = int64_t{range.end} - range.begin;
    if (range.begin != next || size < 1 || size > size_max) {
      return Corrupt("{} range [{}, {}) after {}, of at most {}", what, range.begin, range.end,
                     next, size_max);
    }
    next = range.end;
  }
  if (next == end) return base::OkStatus();
  return Corrupt("{} ranges end at {}, the segment has {}", what, next, end);
}

base::Status CheckHeads(const SegmentPlan& plan) {
  size_t heads = 0;
  for (const Stream& stream : plan.geometry.layers) heads += static_cast<size_t>(stream.kv_heads);
  if (plan.heads.size() != heads) {
    return Corrupt("{} heads, the geometry has {}", plan.heads.size(), heads);
  }
  const auto tokens = static_cast<int64_t>(plan.info.tokens.size());
  for (size_t i = 0; i < heads; ++i) {
    const HeadShape& head = plan.heads[i];
    const bool exact_shape = head.slots == tokens && !head.beta && !head.positions;
    if (head.slots < 0 || head.slots > tokens || (plan.exact && !exact_shape)) {
      return Corrupt("head {} has {} slots for {} tokens (exact: {})", i, head.slots, tokens,
                     plan.exact);
    }
  }
  return base::OkStatus();
}

base::Status CheckPlan(const SegmentPlan& plan) {
  for (const base::Status& status : {plan.geometry.Validate(), ValidateInfo(plan.info)}) {
    if (!status.ok()) return Corrupt("segment header: {}", base::ToStd(status.message()));
  }
  KVASIR_RETURN_IF_ERROR(CheckHeads(plan));
  const auto tokens = static_cast<int64_t>(plan.info.tokens.size());
  KVASIR_RETURN_IF_ERROR(CheckRanges("token", plan.token_ranges, tokens,
                                     plan.exact ? int64_t{kChunkTokensMax} : tokens));
  if (!plan.exact && plan.token_ranges.size() != 1) {
    return Corrupt("{} token ranges in a compacted segment", plan.token_ranges.size());
  }
  return CheckRanges("layer", plan.layer_groups, static_cast<int64_t>(plan.geometry.layers.size()),
                     kChunkLayersMax);
}

// Turns and the tokens between them, cut into ranges of at most kChunkTokensMax.
std::vector<IndexRange> CutTokens(const SegmentInfo& info) {
  std::vector<IndexRange> ranges;
  int32_t next = 0;
  const auto cut_to = [&](int32_t end) {
    while (next < end) {
      const int32_t to = std::min(end, next + kChunkTokensMax);
      ranges.push_back({next, to});
      next = to;
    }
  };
  for (const TurnRange& turn : info.turns) {
    cut_to(turn.begin);
    cut_to(turn.end);
  }
  cut_to(static_cast<int32_t>(info.tokens.size()));
  return ranges;
}

}  // namespace

size_t SegmentPlan::FirstHead(int layer) const {
  size_t first = 0;
  for (int i = 0; i < layer; ++i) first += static_cast<size_t>(geometry.layers[i].kv_heads);
  return first;
}

uint64_t SegmentPlan::ChunkBytes(int64_t chunk) const {
  const IndexRange& tokens = chunk_tokens(chunk);
  const IndexRange& layers = chunk_layers(chunk);
  const auto element = static_cast<uint64_t>(ElementBytes(info.element_type));
  uint64_t bytes = 0;
  size_t head = FirstHead(layers.begin);
  for (int32_t layer = layers.begin; layer < layers.end; ++layer) {
    const Stream& stream = geometry.layers[layer];
    for (int i = 0; i < stream.kv_heads; ++i, ++head) {
      const auto slots = static_cast<uint64_t>(chunk_slots(heads[head], tokens));
      const uint64_t widths = static_cast<uint64_t>(stream.k_width) + stream.v_width;
      bytes +=
          slots * (widths * element + (heads[head].beta ? 4 : 0) + (heads[head].positions ? 4 : 0));
    }
  }
  return bytes;
}

SegmentPlan MakePlan(const KvSegment& segment) {
  SegmentPlan plan;
  plan.geometry = segment.geometry();
  plan.info = segment.info();
  plan.exact = segment.exact();
  const auto layers = static_cast<int32_t>(plan.geometry.layers.size());
  for (int32_t layer = 0; layer < layers; ++layer) {
    for (int kv_head = 0; kv_head < plan.geometry.layers[layer].kv_heads; ++kv_head) {
      const HeadSlots& head = segment.head(layer, kv_head);
      plan.heads.push_back({head.slots, !head.beta.empty(), !head.positions.empty()});
    }
    if (layer % kChunkLayersMax == 0) {
      plan.layer_groups.push_back({layer, std::min(layers, layer + kChunkLayersMax)});
    }
  }
  plan.token_ranges =
      plan.exact ? CutTokens(plan.info)
                 : std::vector{IndexRange{0, static_cast<int32_t>(plan.info.tokens.size())}};
  return plan;
}

std::string WritePlan(const SegmentPlan& plan) {
  WireWriter out;
  out.PutBytes(plan.info.model_id.digest.bytes);
  out.PutBytes(plan.info.context_id.bytes);
  out.PutBytes(plan.info.parent_id.bytes);
  out.Put(plan.info.first_position);
  out.Put(static_cast<uint8_t>(plan.info.element_type));
  out.Put(static_cast<uint16_t>(plan.info.build_id.text.size()));
  out.PutBytes(base::AsBytes(plan.info.build_id.text));
  out.Put(static_cast<uint32_t>(plan.info.tokens.size()));
  for (const int32_t token : plan.info.tokens) out.Put(token);
  out.Put(static_cast<uint32_t>(plan.info.turns.size()));
  for (const TurnRange& turn : plan.info.turns) {
    out.Put(turn.turn);
    out.Put(turn.begin);
    out.Put(turn.end);
  }
  PutGeometry(out, plan.geometry);
  out.Put(static_cast<uint8_t>(plan.exact));
  out.Put(static_cast<uint32_t>(plan.heads.size()));
  for (const HeadShape& head : plan.heads) {
    out.Put(head.slots);
    out.Put(
        static_cast<uint8_t>((head.beta ? kFlagBeta : 0) | (head.positions ? kFlagPositions : 0)));
  }
  PutRanges(out, plan.token_ranges);
  PutRanges(out, plan.layer_groups);
  return out.Take();
}

base::StatusOr<SegmentPlan> ParsePlan(std::span<const uint8_t> bytes) {
  WireReader in(bytes);
  SegmentPlan plan;
  plan.info = GetInfo(in);
  plan.geometry = GetGeometry(in);
  plan.exact = in.Get<uint8_t>() != 0;
  const auto heads = in.Get<uint32_t>();
  if (in.Has(heads, kHeadBytes)) {
    plan.heads.resize(heads);
    for (HeadShape& head : plan.heads) {
      head.slots = in.Get<int32_t>();
      const auto flags = in.Get<uint8_t>();
      head.beta = (flags & kFlagBeta) != 0;
      head.positions = (flags & kFlagPositions) != 0;
    }
  }
  plan.token_ranges = GetRanges(in);
  plan.layer_groups = GetRanges(in);
  if (!in.ok() || in.left() != 0) {
    return Corrupt("segment header of {} bytes {}", bytes.size(),
                   in.ok() ? fmt::format("has {} too many", in.left()) : "ends early");
  }
  KVASIR_RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

std::string WriteClearHeader(const ClearHeader& header) {
  WireWriter out;
  out.PutBytes(base::AsBytes(kMagic));
  out.Put(header.version);
  out.PutBytes(header.id);
  out.PutBytes(header.salt);
  out.Put(header.chunk_count);
  out.Put(header.plan_bytes);
  return out.Take();
}

base::StatusOr<ClearHeader> ParseClearHeader(std::span<const uint8_t> header) {
  WireReader in(header);
  std::array<uint8_t, 4> magic{};
  in.GetBytes(magic);
  if (!in.ok() || !std::equal(magic.begin(), magic.end(), kMagic.begin())) {
    return Corrupt("segment header of {} bytes does not begin with {}", header.size(), kMagic);
  }
  ClearHeader clear;
  clear.version = in.Get<uint32_t>();
  if (clear.version > kCodecVersion) {
    return base::FailedPrecondition("segment of codec version {}, this program reads up to {}",
                                    clear.version, kCodecVersion);
  }
  in.GetBytes(clear.id);
  in.GetBytes(clear.salt);
  clear.chunk_count = in.Get<uint32_t>();
  clear.plan_bytes = in.Get<uint32_t>();
  if (!in.ok() || clear.version < 1) {
    return Corrupt("segment header of {} bytes, version {}", header.size(), clear.version);
  }
  const uint64_t expected = kClearHeaderBytes + uint64_t{clear.plan_bytes} + kTagBytes;
  if (header.size() != expected) {
    return Corrupt("segment header of {} bytes announces {}", header.size(), expected);
  }
  return clear;
}

RecordCipher MakeSegmentCipher(const DataKey& key, const ClearHeader& header) {
  WireWriter info;
  info.PutBytes(base::AsBytes("kvasir segment 1"));
  info.PutBytes(header.id);
  const std::string text = info.Take();
  return RecordCipher(key, header.salt, base::AsBytes(text));
}

std::string ChunkAad(const SegmentId& id, uint32_t index, uint32_t count,
                     const base::Digest& header_digest) {
  WireWriter out;
  out.PutBytes(id);
  out.Put(index);
  out.Put(count);
  out.PutBytes(header_digest.bytes);
  return out.Take();
}

base::Digest SegmentDigest(const base::Digest& header_digest, std::span<const uint8_t> tags) {
  base::Hasher hasher;
  hasher.Add(header_digest.bytes);
  hasher.Add(tags);
  return hasher.Finish();
}

}  // namespace kvasir::kv
