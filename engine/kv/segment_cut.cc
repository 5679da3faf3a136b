#include <algorithm>

#include "engine/base/check.h"
#include "engine/kv/segment.h"

namespace kvasir::kv {
namespace {

void Append(std::vector<std::byte>& to, std::span<const std::byte> from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Tokens [begin, end) of one array of `row_bytes` a token.
std::span<const std::byte> Rows(const std::vector<std::byte>& array, size_t row_bytes,
                                int32_t begin, int32_t end) {
  return std::span(array).subspan(row_bytes * begin, row_bytes * (end - begin));
}

std::vector<TurnRange> CutTurns(const std::vector<TurnRange>& turns, int32_t begin, int32_t end) {
  std::vector<TurnRange> cut;
  for (const TurnRange& turn : turns) {
    const int32_t from = std::max(turn.begin, begin);
    const int32_t to = std::min(turn.end, end);
    if (from < to) cut.push_back({turn.turn, from - begin, to - begin});
  }
  return cut;
}

// Adds the turn ranges of the part whose first token has index `offset` in the whole.
void AppendTurns(std::vector<TurnRange>& whole, const std::vector<TurnRange>& part,
                 int32_t offset) {
  for (const TurnRange& turn : part) {
    const bool continues = turn.begin == 0 && !whole.empty() && whole.back().end == offset &&
                           whole.back().turn == turn.turn;
    if (continues) {
      whole.back().end = offset + turn.end;
    } else {
      whole.push_back({turn.turn, offset + turn.begin, offset + turn.end});
    }
  }
}

base::Status CheckPart(const KvSegment& previous, const KvSegment& part, size_t index) {
  if (part.info().model_id != previous.info().model_id ||
      !(part.geometry() == previous.geometry()) ||
      part.info().element_type != previous.info().element_type) {
    return base::InvalidArgument("part {} is of another model than part {}", index, index - 1);
  }
  const int64_t expected = previous.info().first_position + previous.logical_tokens();
  if (part.info().first_position != expected) {
    return base::InvalidArgument("part {} begins at position {}, part {} ends at {}", index,
                                 part.info().first_position, index - 1, expected);
  }
  if (part.info().parent_id != previous.info().context_id) {
    return base::InvalidArgument("part {} follows context {}, part {} ends with {}", index,
                                 part.info().parent_id.Hex(), index - 1,
                                 previous.info().context_id.Hex());
  }
  return base::OkStatus();
}

}  // namespace

std::shared_ptr<const KvSegment> Slice(const KvSegment& segment, int32_t begin, int32_t end,
                                       const base::Digest& parent_id,
                                       const base::Digest& context_id) {
  KVASIR_CHECK(segment.exact() && 0 <= begin && begin < end && end <= segment.logical_tokens());
  const size_t element = ElementBytes(segment.info().element_type);
  std::vector<HeadSlots> heads;
  for (size_t layer = 0; layer < segment.geometry().layers.size(); ++layer) {
    const Stream& stream = segment.geometry().layers[layer];
    for (int kv_head = 0; kv_head < stream.kv_heads; ++kv_head) {
      const HeadSlots& from = segment.head(static_cast<int>(layer), kv_head);
      HeadSlots& head = heads.emplace_back();
      head.slots = end - begin;
      Append(head.keys, Rows(from.keys, stream.k_width * element, begin, end));
      Append(head.values, Rows(from.values, stream.v_width * element, begin, end));
    }
  }
  SegmentInfo info = segment.info();
  info.parent_id = parent_id;
  info.context_id = context_id;
  info.first_position += begin;
  info.tokens.assign(segment.info().tokens.begin() + begin, segment.info().tokens.begin() + end);
  info.turns = CutTurns(segment.info().turns, begin, end);
  auto cut = KvSegment::Create(segment.geometry(), std::move(info), std::move(heads));
  KVASIR_CHECK(cut.ok());
  return std::move(cut).value();
}

base::StatusOr<std::shared_ptr<const KvSegment>> Join(
    std::span<const std::shared_ptr<const KvSegment>> parts) {
  if (parts.empty()) return base::InvalidArgument("no parts to join");
  size_t tokens = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]->exact()) return base::InvalidArgument("part {} is not exact", i);
    if (i > 0) KVASIR_RETURN_IF_ERROR(CheckPart(*parts[i - 1], *parts[i], i));
    tokens += parts[i]->info().tokens.size();
  }
  if (tokens > kSegmentTokensMax) {
    return base::InvalidArgument("parts of {} tokens together, at most {}", tokens,
                                 kSegmentTokensMax);
  }
  SegmentInfo info = parts[0]->info();
  info.context_id = parts.back()->info().context_id;
  for (const auto& part : parts.subspan(1)) {
    AppendTurns(info.turns, part->info().turns, static_cast<int32_t>(info.tokens.size()));
    info.tokens.insert(info.tokens.end(), part->info().tokens.begin(), part->info().tokens.end());
  }
  std::vector<HeadSlots> heads;
  const size_t element = ElementBytes(info.element_type);
  const Geometry& geometry = parts[0]->geometry();
  for (size_t layer = 0; layer < geometry.layers.size(); ++layer) {
    const Stream& stream = geometry.layers[layer];
    for (int kv_head = 0; kv_head < stream.kv_heads; ++kv_head) {
      HeadSlots& head = heads.emplace_back();
      head.slots = static_cast<int32_t>(tokens);
      head.keys.reserve(tokens * stream.k_width * element);
      head.values.reserve(tokens * stream.v_width * element);
      for (const auto& part : parts) {
        Append(head.keys, part->head(static_cast<int>(layer), kv_head).keys);
        Append(head.values, part->head(static_cast<int>(layer), kv_head).values);
      }
    }
  }
  return KvSegment::Create(geometry, std::move(info), std::move(heads));
}

}  // namespace kvasir::kv
