#include "engine/kernels/cpu/attention_group.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/check.h"

namespace kvasir::kernels::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

}  // namespace

GroupAttention::GroupAttention(const Kernels& kernels, const AttendParams& params,
                               const OrderedSpans& spans, const HeadPlace& place,
                               const LineRange& lines, GroupScratch& scratch)
    : kernels_(kernels),
      kv_(place.layout->type() == KvType::kF16 ? kernels.f16 : kernels.f32),
      params_(params),
      spans_(spans),
      place_(place),
      lines_(lines),
      s_(scratch),
      k_width_(place.layout->layer(place.layer).k_width),
      v_stride_(place.layout->v_stride(place.layer)),
      tiles_((lines.lines + kTileLines - 1) / kTileLines) {}

// Lines are spread evenly over the tiles.
GroupAttention::Tile GroupAttention::TileAt(int tile) const {
  Tile out;
  out.first = lines_.lines * tile / tiles_;
  out.lines = lines_.lines * (tile + 1) / tiles_ - out.first;
  out.seen_first = kSplitPositions;
  for (int line = out.first; line < out.first + out.lines; ++line) {
    if (s_.seen_first[line] >= s_.seen_end[line]) continue;
    out.seen_first = std::min(out.seen_first, s_.seen_first[line]);
    out.seen_end = std::max(out.seen_end, s_.seen_end[line]);
  }
  return out;
}

void GroupAttention::SetSeen(const OrderedSpans::Unit& unit) {
  const int64_t base = unit.split * kSplitPositions;
  for (int line = 0; line < lines_.lines; ++line) {
    const int64_t m = lines_.position(line);
    int64_t first = 0;
    int64_t end = kSplitPositions;
    if (unit.span != nullptr) {
      if (m < unit.span->end) end = 0;
    } else {
      if (params_.window > 0) first = m - params_.window + 1 - base;
      end = m + 1 - base;
    }
    s_.seen_first[line] = static_cast<int>(std::clamp<int64_t>(first, 0, kSplitPositions));
    s_.seen_end[line] = static_cast<int>(std::clamp<int64_t>(end, 0, kSplitPositions));
  }
}

void GroupAttention::PackQueries(int64_t frame) {
  if (packed_ && packed_frame_ == frame) return;
  packed_ = true;
  packed_frame_ = frame;
  const RopeTable& rope = *params_.rope;
  for (int tile = 0; tile < tiles_; ++tile) {
    const int first = lines_.lines * tile / tiles_;
    const int end = lines_.lines * (tile + 1) / tiles_;
    float* packed = s_.queries + static_cast<size_t>(tile) * kWidthMax * kTilePitch;
    for (int line = first; line < end; ++line) {
      const int64_t m = lines_.position(line) - frame;
      if (m < 0) continue;  // sees nothing of this frame
      KVASIR_CHECK(rope.rotated() == 0 || m < rope.positions_max());
      const int64_t row = lines_.sequence->first_row + lines_.row(line);
      const int head = place_.kv_head * lines_.heads + lines_.head(line);
      const float* query = params_.q + row * params_.q_stride + head * k_width_;
      if (rope.rotated() != 0) {
        kernels_.rotate(query, k_width_,
                        {.cos = rope.cos(m),
                         .sin = rope.sin(m),
                         .rotated = rope.rotated(),
                         .interleaved = rope.interleaved()},
                        s_.rotated);
        query = s_.rotated;
      }
      float* out = packed + (line - first);
      for (int d = 0; d < k_width_; ++d) out[d * kTilePitch] = query[d];
    }
  }
}

void GroupAttention::ScoreRun(const Run& run, int index) {
  const Tile tile = TileAt(index);
  const int first = std::max(run.first, tile.seen_first);
  const int end = std::min(run.first + run.count, tile.seen_end);
  if (first >= end) return;
  const int slot = run.slot + first - run.first;
  const int block = slot / kLanes;
  const int slot_end = slot + end - first;
  ScoreTile score;
  score.keys = run.keys + static_cast<size_t>(block) * kLanes * KvBytes(place_.layout->type());
  score.k_width = k_width_;
  score.blocks = (slot_end + kLanes - 1) / kLanes - block;
  score.queries = s_.queries + static_cast<size_t>(index) * kWidthMax * kTilePitch;
  score.lines = tile.lines;
  score.scale = params_.scale;
  score.beta = run.beta == nullptr ? nullptr : run.beta + block * kLanes;
  score.out = s_.tile;
  kv_.scores(score);
  for (int i = 0; i < tile.lines; ++i) {
    std::memcpy(s_.scores + (tile.first + i) * kScorePitch + first,
                s_.tile + i * kPageSlots + slot - block * kLanes, sizeof(float) * (end - first));
  }
}

// Adds slots at indices [first, end) of `run` to the output of `lines` lines of the tile in s_.out,
// from `line` of the group.
void GroupAttention::AddRun(const Run& run, int first, int end, int line, int lines) {
  first = std::max(first, run.first);
  end = std::min(end, run.first + run.count);
  if (first >= end) return;
  const size_t element = KvBytes(place_.layout->type());
  ValueTile value;
  value.values = run.values + element * v_stride_ * (run.slot + first - run.first);
  value.v_stride = v_stride_;
  value.slots = end - first;
  value.p = s_.scores + line * kScorePitch + first;
  value.lines = lines;
  value.out = s_.out;
  kv_.values(value);
}

// Slots that every line of the tile sees go together; those at the edges that only some see, line
// by line, so that a slot a line does not see never meets it.
void GroupAttention::AddValues(int run_count, const Tile& tile) {
  int common_first = 0;
  int common_end = kSplitPositions;
  for (int line = tile.first; line < tile.first + tile.lines; ++line) {
    if (s_.partial[line].max == kNothing) continue;
    common_first = std::max(common_first, s_.seen_first[line]);
    common_end = std::min(common_end, s_.seen_end[line]);
  }
  common_end = std::max(common_end, common_first);
  std::fill_n(s_.out, tile.lines * v_stride_, 0.0f);
  const auto add_edges = [&](const Run& run, int first, int end) {
    for (int i = 0; i < tile.lines; ++i) {
      const int line = tile.first + i;
      if (s_.partial[line].max == kNothing) continue;
      const int from = std::max({run.first, first, s_.seen_first[line]});
      const int to = std::min({run.first + run.count, end, s_.seen_end[line]});
      if (from >= to) continue;
      ValueTile value;
      value.values = run.values + static_cast<size_t>(KvBytes(place_.layout->type())) * v_stride_ *
                                      (run.slot + from - run.first);
      value.v_stride = v_stride_;
      value.slots = to - from;
      value.p = s_.scores + line * kScorePitch + from;
      value.lines = 1;
      value.out = s_.out + i * v_stride_;
      kv_.values(value);
    }
  };
  for (int i = 0; i < run_count; ++i) {
    const Run& run = s_.runs[i];
    add_edges(run, 0, common_first);
    AddRun(run, common_first, common_end, tile.first, tile.lines);
    add_edges(run, common_end, kSplitPositions);
  }
}

void GroupAttention::FinishTile(int run_count, int index, Sink& sink) {
  const Tile tile = TileAt(index);
  if (tile.seen_first >= tile.seen_end) return;
  const int blocks = (tile.seen_end + kLanes - 1) / kLanes;
  for (int line = tile.first; line < tile.first + tile.lines; ++line) {
    float* scores = s_.scores + line * kScorePitch;
    std::fill(scores, scores + s_.seen_first[line], kNothing);
    std::fill(scores + std::max(s_.seen_first[line], s_.seen_end[line]), scores + kScorePitch,
              kNothing);
    s_.partial[line] = kernels_.softmax(scores, blocks);
  }
  AddValues(run_count, tile);
  for (int i = 0; i < tile.lines; ++i) {
    const int line = tile.first + i;
    if (s_.partial[line].max == kNothing) continue;
    sink.Take(line, s_.partial[line], s_.out + i * v_stride_);
  }
}

void GroupAttention::RunUnit(const OrderedSpans::Unit& unit, Sink& sink) {
  SetSeen(unit);
  int first = kSplitPositions;
  int end = 0;
  for (int line = 0; line < lines_.lines; ++line) {
    if (s_.seen_first[line] >= s_.seen_end[line]) continue;
    first = std::min(first, s_.seen_first[line]);
    end = std::max(end, s_.seen_end[line]);
  }
  const int run_count = spans_.RunsOf(place_, unit, first, end, s_.runs);
  if (run_count == 0) return;
  std::fill_n(s_.scores, lines_.lines * kScorePitch, kNothing);
  for (int i = 0; i < run_count; ++i) {
    PackQueries(s_.runs[i].frame);
    for (int tile = 0; tile < tiles_; ++tile) ScoreRun(s_.runs[i], tile);
  }
  for (int tile = 0; tile < tiles_; ++tile) FinishTile(run_count, tile, sink);
}

}  // namespace kvasir::kernels::cpu
