#include "engine/kernels/cpu/runs.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.h"

namespace kvasir::kernels::cpu {
namespace {

const SparseHead& HeadOf(const Span& span, const HeadPlace& place) {
  return span.sparse[static_cast<size_t>(place.layer) * span.sparse_heads + place.kv_head];
}

int64_t SparseSplits(const Span& span, const HeadPlace& place) {
  return (HeadOf(span, place).slots + kSplitPositions - 1) / kSplitPositions;
}

// Slots [first, end) of a page that `visible` allows, as runs. `index` is the split index of slot
// 0.
int PageRuns(uint64_t visible, int first, int end, int index, const Run& page, Run* runs) {
  uint64_t left = visible;
  if (end < kPageSlots) left &= (uint64_t{1} << end) - 1;
  left &= ~uint64_t{0} << first;
  int count = 0;
  while (left != 0) {
    const int from = std::countr_zero(left);
    const int length = std::countr_one(left >> from);
    Run& run = runs[count++];
    run = page;
    run.slot = from;
    run.first = index + from;
    run.count = length;
    if (from + length >= kPageSlots) break;
    left &= ~uint64_t{0} << (from + length);
  }
  return count;
}

int SparseRuns(const Span& span, const HeadPlace& place, int64_t split, int first, int end,
               Run* runs) {
  const SparseHead& head = HeadOf(span, place);
  const KvLayout& layout = *place.layout;
  const size_t element = KvBytes(layout.type());
  const size_t keys_bytes = element * layout.k_stride(place.layer) * kPageSlots;
  const size_t tile_bytes = keys_bytes + element * layout.v_stride(place.layer) * kPageSlots;
  const int64_t base = split * kSplitPositions;
  const int64_t last = std::min<int64_t>(base + end, head.slots);
  int count = 0;
  for (int64_t at = base + first; at < last;) {
    const int64_t tile = at / kPageSlots;
    const int64_t tile_end = std::min(last, (tile + 1) * kPageSlots);
    Run page;
    page.keys = head.tiles + tile * tile_bytes;
    page.values = page.keys + keys_bytes;
    page.beta = head.beta + tile * kPageSlots;
    page.frame = span.frame;
    uint64_t visible = 0;
    for (int64_t i = at; i < tile_end; ++i) {
      if (head.beta[i] != -std::numeric_limits<float>::infinity()) {
        visible |= uint64_t{1} << (i % kPageSlots);
      }
    }
    count += PageRuns(visible, static_cast<int>(at % kPageSlots),
                      static_cast<int>(tile_end - tile * kPageSlots),
                      static_cast<int>(tile * kPageSlots - base), page, runs + count);
    at = tile_end;
  }
  return count;
}

}  // namespace

void OrderedSpans::Reset(const SequenceRows& sequence) {
  sparse_.clear();
  dense_.clear();
  for (const Span& span : sequence.spans) (span.sparse.empty() ? dense_ : sparse_).push_back(&span);
  const auto before = [](const Span* a, const Span* b) { return a->begin < b->begin; };
  std::stable_sort(sparse_.begin(), sparse_.end(), before);
  std::stable_sort(dense_.begin(), dense_.end(), before);
}

OrderedSpans::Units OrderedSpans::UnitsOf(const HeadPlace& place, int64_t first,
                                          int64_t end) const {
  Units units;
  for (const Span* span : sparse_) units.sparse += SparseSplits(*span, place);
  int64_t from = std::numeric_limits<int64_t>::max();
  int64_t to = 0;
  for (const Span* span : dense_) {
    if (span->begin >= span->end) continue;
    from = std::min(from, span->begin);
    to = std::max(to, span->end);
  }
  from = std::max(from, first);
  to = std::min(to, end);
  if (from < to) {
    units.dense_first = from / kSplitPositions;
    units.dense = (to - 1) / kSplitPositions + 1 - units.dense_first;
  }
  return units;
}

OrderedSpans::Unit OrderedSpans::UnitAt(const HeadPlace& place, const Units& units,
                                        int64_t index) const {
  if (index >= units.sparse) return {nullptr, units.dense_first + (index - units.sparse)};
  for (const Span* span : sparse_) {
    const int64_t splits = SparseSplits(*span, place);
    if (index < splits) return {span, index};
    index -= splits;
  }
  KVASIR_CHECK(false);
  return {};
}

int OrderedSpans::DenseRuns(const HeadPlace& place, int64_t split, int first, int end,
                            Run* runs) const {
  const KvLayout& layout = *place.layout;
  const size_t keys = layout.keys_offset(place.layer, place.kv_head);
  const size_t values = layout.values_offset(place.layer, place.kv_head);
  const int64_t base = split * kSplitPositions;
  int count = 0;
  for (const Span* span : dense_) {
    // Logical positions, page by page of local positions.
    int64_t at = std::max(base + first, span->begin);
    const int64_t to = std::min(base + end, span->end);
    while (at < to) {
      const int64_t page = (at - span->frame) / kPageSlots;
      const int64_t page_at = page * kPageSlots + span->frame;  // logical position of slot 0
      const int64_t page_end = std::min(to, page_at + kPageSlots);
      const size_t i = static_cast<size_t>(page - span->page_first);
      KVASIR_CHECK(at >= span->frame && i < span->pages.size());
      Run tile;
      tile.keys = span->pages[i] + keys;
      tile.values = span->pages[i] + values;
      tile.frame = span->frame;
      KVASIR_CHECK(span->visible.empty() || i < span->visible.size());
      const uint64_t visible = span->visible.empty() ? ~uint64_t{0} : span->visible[i];
      count +=
          PageRuns(visible, static_cast<int>(at - page_at), static_cast<int>(page_end - page_at),
                   static_cast<int>(page_at - base), tile, runs + count);
      at = page_end;
    }
  }
  return count;
}

int OrderedSpans::RunsOf(const HeadPlace& place, const Unit& unit, int first, int end,
                         Run* runs) const {
  if (first >= end) return 0;
  if (unit.span != nullptr) return SparseRuns(*unit.span, place, unit.split, first, end, runs);
  return DenseRuns(place, unit.split, first, end, runs);
}

}  // namespace kvasir::kernels::cpu
