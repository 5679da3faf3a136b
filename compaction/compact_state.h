// CompactStates: an exact state made smaller, head by head, under one budget over all heads.
//
// Source: Attention Matching (Zweiger et al., arXiv 2602.16284) with global budgets and the recipe
// of compaction/solver. Memory: one head's solver at a time per thread (head_fit.h) besides the
// results.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compaction/solver/head_fit.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/kv/segment.h"
#include "engine/kv/state_capture.h"

namespace kvasir::compaction {

struct CompactionOptions {
  double floor_share = 0.1;  // of the mean budget, for every head
  // A head's fit uses the larger of these many captured rows (evenly spaced) and 4 per slot kept.
  int64_t fit_rows = 3000;
  FitOptions fit;
};

// How much of a slot's value comes from a turn: d value / d the turn's values.
struct TurnShare {
  int64_t turn = 0;
  float share = 0;
};

struct CompactedState {
  std::shared_ptr<const kv::KvSegment> segment;  // the same tokens, turns and identity, fewer slots
  // [layer · kv_heads + head][slot]: the turns with the largest |share|, at most four, largest
  // first.
  std::vector<std::vector<std::vector<TurnShare>>> provenance;
};

// One result per ratio, all from the same Gram matrices. Slots of all heads together: heads ·
// tokens / ratio, rounded. `pool`: heads are fitted in parallel; results do not depend on its
// threads. Cancellable between heads. Errors: InvalidArgument (state not exact; a ratio below 1 or
// not finite; a capture of another state: slots, layers, heads or widths differ; not finite),
// Cancelled.
base::StatusOr<std::vector<CompactedState>> CompactStates(
    const kv::KvSegment& state, const kv::StateCapture& capture, std::span<const double> ratios,
    const CompactionOptions& options, base::ThreadPool& pool, const std::atomic<bool>& cancelled);

}  // namespace kvasir::compaction
