// Runs: which slots of a sequence one split of a reduction grid reaches, as stretches that lie in
// one tile of 64 slots. The same slots in the same order come out however they lie in spans and
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kernels/backend.h"

namespace kvasir::kernels::cpu {

// One (layer, KV head) of a layout.
struct HeadPlace {
  const KvLayout* layout = nullptr;
  int layer = 0;
  int kv_head = 0;
};

// Consecutive visible slots of one tile.
struct Run {
  int first = 0;                      // index of the first slot in its split, [0, kSplitPositions)
  int count = 0;                      // slots
  int slot = 0;                       // of the first, in its tile
  const std::byte* keys = nullptr;    // the tile's keys [k_stride, kPageSlots]
  const std::byte* values = nullptr;  // the tile's values [kPageSlots, v_stride]
  const float* beta = nullptr;        // [kPageSlots] from slot 0 of the tile, or nullptr
  int64_t frame = 0;
};

// The spans of one sequence in the order in which partials are merged. Threads: immutable between
// calls of Reset.
class OrderedSpans {
 public:
  // Keeps references to the spans.
  void Reset(const SequenceRows& sequence);

  // Units of reduction in merge order: the splits of each sparse span, then the dense splits that
  // positions [first, end) reach.
  struct Units {
    int64_t sparse = 0;       // number of sparse units
    int64_t dense_first = 0;  // split of the first dense unit
    int64_t dense = 0;        // number of dense units
    int64_t count() const { return sparse + dense; }
  };
  Units UnitsOf(const HeadPlace& place, int64_t first, int64_t end) const;

  // One unit: a split of the dense grid (span == nullptr) or of a sparse span.
  struct Unit {
    const Span* span = nullptr;
    int64_t split = 0;
  };
  Unit UnitAt(const HeadPlace& place, const Units& units, int64_t index) const;

  // The runs of `unit` at indices [first, end) of its split, ascending. Returns how many.
  // REQUIRES: room for kSplitPositions.
  int RunsOf(const HeadPlace& place, const Unit& unit, int first, int end, Run* runs) const;

 private:
  int DenseRuns(const HeadPlace& place, int64_t split, int first, int end, Run* runs) const;

  std::vector<const Span*> sparse_;  // by begin
  std::vector<const Span*> dense_;   // by begin
};

}  // namespace kvasir::kernels::cpu
