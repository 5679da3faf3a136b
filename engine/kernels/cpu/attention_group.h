// GroupAttention: the partials of up to kLinesMax query lines of one KV head, unit by unit.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/kernels/cpu/runs.h"

namespace kvasir::kernels::cpu {

// Lines of one group.
inline constexpr int kLinesMax = 48;
inline constexpr int kTilesMax = kLinesMax / kTileLines;
inline constexpr int kWidthMax = 512;
// The largest score of a line that has met no slot.
inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Lines [line_first, line_first + lines) of a sequence and KV head; line l is row l / heads, query
// head kv_head · heads + l % heads, heads = q_heads / kv_heads.
struct LineRange {
  const SequenceRows* sequence = nullptr;
  int64_t line_first = 0;
  int lines = 0;
  int heads = 1;

  int64_t row(int line) const { return (line_first + line) / heads; }
  int head(int line) const { return static_cast<int>((line_first + line) % heads); }
  int64_t position(int line) const { return sequence->first_position + row(line); }
};

// Memory of one thread; about 0.6 MB.
struct GroupScratch {
  alignas(64) float scores[kLinesMax * kScorePitch];
  alignas(64) float queries[kTilesMax * kWidthMax * kTilePitch];
  alignas(64) float out[kLinesMax * kWidthMax];    // of the unit
  alignas(64) float wide[kPageSlots * kWidthMax];  // keys or values of a run as floats
  alignas(64) float tile[kTileLines * kPageSlots];
  alignas(64) float rotated[kWidthMax];
  alignas(64) float merged[kLinesMax * kWidthMax];
  Partial partial[kLinesMax];
  int seen_first[kLinesMax];  // per line: indices [first, end) of the unit that it sees
  int seen_end[kLinesMax];
  Run runs[kSplitPositions];
};

class GroupAttention {
 public:
  // REQUIRES: all outlive it.
  GroupAttention(const Kernels& kernels, const AttendParams& params, const OrderedSpans& spans,
                 const HeadPlace& place, const LineRange& lines, GroupScratch& scratch);

  // Called with the partial of each line that sees something: (line, partial, out [v_stride]).
  class Sink {
   public:
    virtual void Take(int line, const Partial& partial, const float* out) = 0;

   protected:
    ~Sink() = default;
  };
  void RunUnit(const OrderedSpans::Unit& unit, Sink& sink);

 private:
  // Lines [first, first + lines) of the group and what they see: every slot that one of them sees
  // is in [seen_first, seen_end), every slot in [common_first, common_end) is seen by all of them.
  struct Tile {
    int first = 0, lines = 0;
    int seen_first = 0, seen_end = 0;
    int common_first = 0, common_end = 0;
  };
  // Elements that the kernels read: a page's own, or s_.wide.
  struct Elements {
    const std::byte* data = nullptr;
    int bytes = 0;  // per element
  };

  void SetSeen(const OrderedSpans::Unit& unit);
  void PackQueries(int64_t frame);
  Elements Widened(const std::byte* elements, int64_t count);
  void ScoreRun(const Run& run, const Elements& keys, int tile);
  void Softmax(Tile& tile);
  void AddRun(const Run& run, const Elements& values, const Tile& tile);
  void AddSlots(const Run& run, const Elements& values, int first, int end, int line, int lines);

  const Kernels& kernels_;
  const KvKernels& stored_;  // on the pages' elements
  const KvKernels* kv_;      // on what Widened gives
  const AttendParams& params_;
  const OrderedSpans& spans_;
  const HeadPlace place_;
  const LineRange lines_;
  GroupScratch& s_;
  const int k_width_;
  const int v_stride_;
  const int tile_count_;
  Tile tiles_[kTilesMax];
  bool packed_ = false;
  int64_t packed_frame_ = 0;
};

}  // namespace kvasir::kernels::cpu
