#include "engine/kernels/cpu/attention_group.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"

namespace kvasir::kernels::cpu {
namespace {

// From so many tiles on, elements are converted to floats once for all of them.
constexpr int kTilesToWiden = 3;

}  // namespace

GroupAttention::GroupAttention(const Kernels& kernels, const AttendParams& params,
                               const OrderedSpans& spans, const HeadPlace& place,
                               const LineRange& lines, GroupScratch& scratch)
    : kernels_(kernels),
      stored_(place.layout->type() == KvType::kF16 ? kernels.f16 : kernels.f32),
      params_(params),
      spans_(spans),
      place_(place),
      lines_(lines),
      s_(scratch),
      k_width_(place.layout->layer(place.layer).k_width),
      v_stride_(place.layout->v_stride(place.layer)),
      tile_count_((lines.lines + kTileLines - 1) / kTileLines) {
  kv_ = tile_count_ >= kTilesToWiden ? &kernels.f32 : &stored_;
  for (int i = 0; i < tile_count_; ++i) {  // lines are spread evenly
    tiles_[i].first = lines.lines * i / tile_count_;
    tiles_[i].lines = lines.lines * (i + 1) / tile_count_ - tiles_[i].first;
  }
}

void GroupAttention::SetSeen(const OrderedSpans::Unit& unit) {
  const int64_t base = unit.split * kSplitPositions;
  for (int i = 0; i < tile_count_; ++i) {
    Tile& tile = tiles_[i];
    tile.seen_first = kSplitPositions;
    tile.seen_end = 0;
    for (int line = tile.first; line < tile.first + tile.lines; ++line) {
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
      if (s_.seen_first[line] >= s_.seen_end[line]) continue;
      tile.seen_first = std::min(tile.seen_first, s_.seen_first[line]);
      tile.seen_end = std::max(tile.seen_end, s_.seen_end[line]);
    }
  }
}

// Queries of each tile, rotated for `frame`, as [k_width, kTilePitch].
void GroupAttention::PackQueries(int64_t frame) {
  if (packed_ && packed_frame_ == frame) return;
  packed_ = true;
  packed_frame_ = frame;
  const RopeTable& rope = *params_.rope;
  for (int i = 0; i < tile_count_; ++i) {
    float* packed = s_.queries + static_cast<size_t>(i) * kWidthMax * kTilePitch;
    for (int j = 0; j < tiles_[i].lines; ++j) {
      const int line = tiles_[i].first + j;
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
      for (int d = 0; d < k_width_; ++d) packed[d * kTilePitch + j] = query[d];
    }
  }
}

// Where several tiles read the same elements they are converted once.
GroupAttention::Elements GroupAttention::Widened(const std::byte* elements, int64_t count) {
  if (kv_ == &stored_) return {elements, KvBytes(place_.layout->type())};
  if (&stored_ == &kernels_.f32) return {elements, KvBytes(KvType::kF32)};
  stored_.load(elements, count, s_.wide);
  return {reinterpret_cast<const std::byte*>(s_.wide), KvBytes(KvType::kF32)};
}

void GroupAttention::ScoreRun(const Run& run, const Elements& keys, int index) {
  const Tile& tile = tiles_[index];
  const int first = std::max(run.first, tile.seen_first);
  const int end = std::min(run.first + run.count, tile.seen_end);
  if (first >= end) return;
  const int slot = run.slot + first - run.first;
  const int block = slot / kLanes;
  const int slot_end = slot + end - first;
  ScoreTile score;
  score.keys = keys.data + static_cast<size_t>(block) * kLanes * keys.bytes;
  score.k_width = k_width_;
  score.blocks = (slot_end + kLanes - 1) / kLanes - block;
  score.queries = s_.queries + static_cast<size_t>(index) * kWidthMax * kTilePitch;
  score.lines = tile.lines;
  score.scale = params_.scale;
  score.beta = run.beta == nullptr ? nullptr : run.beta + block * kLanes;
  score.out = s_.tile;
  kv_->scores(score);
  for (int i = 0; i < tile.lines; ++i) {
    std::memcpy(s_.scores + (tile.first + i) * kScorePitch + first,
                s_.tile + i * kPageSlots + slot - block * kLanes, sizeof(float) * (end - first));
  }
}

// Scores of the tile's lines become weights; says what all lines that see something see.
void GroupAttention::Softmax(Tile& tile) {
  const int blocks = (tile.seen_end + kLanes - 1) / kLanes;
  tile.common_first = 0;
  tile.common_end = kSplitPositions;
  for (int line = tile.first; line < tile.first + tile.lines; ++line) {
    if (blocks == 0) {
      s_.partial[line] = {.max = kNothing, .sum = 0};
      continue;
    }
    float* scores = s_.scores + line * kScorePitch;
    float* const end = scores + blocks * kLanes;
    std::fill(scores, std::min(scores + s_.seen_first[line], end), kNothing);
    std::fill(std::min(scores + std::max(s_.seen_first[line], s_.seen_end[line]), end), end,
              kNothing);
    s_.partial[line] = kernels_.softmax(scores, blocks);
    if (s_.partial[line].max == kNothing) continue;
    tile.common_first = std::max(tile.common_first, s_.seen_first[line]);
    tile.common_end = std::min(tile.common_end, s_.seen_end[line]);
  }
  tile.common_end = std::max(tile.common_end, tile.common_first);
}

// Adds slots at indices [first, end) of `run` to the output of `lines` lines.
void GroupAttention::AddSlots(const Run& run, const Elements& values, int first, int end, int line,
                              int lines) {
  first = std::max(first, run.first);
  end = std::min(end, run.first + run.count);
  if (first >= end) return;
  ValueTile value;
  value.values = values.data + static_cast<size_t>(values.bytes) * v_stride_ * (first - run.first);
  value.v_stride = v_stride_;
  value.slots = end - first;
  value.p = s_.scores + line * kScorePitch + first;
  value.lines = lines;
  value.out = s_.out + line * v_stride_;
  kv_->values(value);
}

// Slots that every line of the tile sees go together; those at the edges that only some see, line
// by line, so that a slot a line does not see never meets it.
void GroupAttention::AddRun(const Run& run, const Elements& values, const Tile& tile) {
  const auto add_edges = [&](int first, int end) {
    if (std::max(first, run.first) >= std::min(end, run.first + run.count)) return;
    for (int line = tile.first; line < tile.first + tile.lines; ++line) {
      if (s_.partial[line].max == kNothing) continue;
      AddSlots(run, values, std::max(first, s_.seen_first[line]), std::min(end, s_.seen_end[line]),
               line, 1);
    }
  };
  if (tile.seen_first >= tile.seen_end) return;
  add_edges(tile.seen_first, tile.common_first);
  AddSlots(run, values, tile.common_first, tile.common_end, tile.first, tile.lines);
  add_edges(tile.common_end, tile.seen_end);
}

void GroupAttention::RunUnit(const OrderedSpans::Unit& unit, Sink& sink) {
  SetSeen(unit);
  int first = kSplitPositions;
  int end = 0;
  for (int i = 0; i < tile_count_; ++i) {
    first = std::min(first, tiles_[i].seen_first);
    end = std::max(end, tiles_[i].seen_end);
  }
  const int run_count = spans_.RunsOf(place_, unit, first, end, s_.runs);
  if (run_count == 0) return;
  int slots = 0;
  for (int i = 0; i < run_count; ++i) slots += s_.runs[i].count;
  if (slots != end - first) std::fill_n(s_.scores, lines_.lines * kScorePitch, kNothing);
  for (int i = 0; i < run_count; ++i) {
    const Run& run = s_.runs[i];
    PackQueries(run.frame);
    const Elements keys = Widened(run.keys, int64_t{k_width_} * kPageSlots);
    for (int tile = 0; tile < tile_count_; ++tile) ScoreRun(run, keys, tile);
  }
  for (int i = 0; i < tile_count_; ++i) Softmax(tiles_[i]);
  std::fill_n(s_.out, lines_.lines * v_stride_, 0.0f);
  const int element = KvBytes(place_.layout->type());
  for (int i = 0; i < run_count; ++i) {
    const Run& run = s_.runs[i];
    const Elements values =
        Widened(run.values + static_cast<size_t>(run.slot) * v_stride_ * element,
                int64_t{run.count} * v_stride_);
    for (int tile = 0; tile < tile_count_; ++tile) AddRun(run, values, tiles_[tile]);
  }
  for (int line = 0; line < lines_.lines; ++line) {
    if (s_.partial[line].max == kNothing) continue;
    sink.Take(line, s_.partial[line], s_.out + line * v_stride_);
  }
}

}  // namespace kvasir::kernels::cpu
