#include <cmath>
#include <limits>
#include <vector>

#include "engine/base/check.h"
#include "engine/kernels/reference/reference_backend.h"

namespace kvasir::kernels::reference {
namespace {

// A visible slot: element d of its key is key[d * kPageSlots], of its value value[d].
struct Slot {
  const float* key = nullptr;
  const float* value = nullptr;
  double beta = 0;
  int64_t frame = 0;
};

void AddDense(const AttendParams& params, const Span& span, int kv_head, int64_t position,
              std::vector<Slot>& slots) {
  const KvLayout& layout = *params.layout;
  for (int64_t at = span.begin; at < span.end && at <= position; ++at) {
    if (params.window > 0 && at <= position - params.window) continue;
    const int64_t local = at - span.frame;
    const int64_t page = local / kPageSlots - span.page_first;
    const int slot = static_cast<int>(local % kPageSlots);
    KVASIR_CHECK(local >= 0 && page >= 0 && page < static_cast<int64_t>(span.pages.size()));
    if (!span.visible.empty() && (span.visible[page] >> slot & 1) == 0) continue;
    const std::byte* bytes = span.pages[page];
    slots.push_back(
        {reinterpret_cast<const float*>(bytes + layout.keys_offset(params.layer, kv_head)) + slot,
         reinterpret_cast<const float*>(bytes + layout.values_offset(params.layer, kv_head)) +
             slot * layout.v_stride(params.layer),
         0.0, span.frame});
  }
}

void AddSparse(const AttendParams& params, const Span& span, int kv_head, int64_t position,
               std::vector<Slot>& slots) {
  if (position < span.end) return;
  const SparseHead& head = span.sparse[params.layer * span.sparse_heads + kv_head];
  const int64_t keys = int64_t{params.layout->k_stride(params.layer)} * kPageSlots;
  const int64_t v_stride = params.layout->v_stride(params.layer);
  const auto* tiles = reinterpret_cast<const float*>(head.tiles);
  for (int i = 0; i < head.slots; ++i) {
    if (head.beta[i] == -std::numeric_limits<float>::infinity()) continue;
    const float* tile = tiles + i / kPageSlots * (keys + v_stride * kPageSlots);
    slots.push_back(
        {tile + i % kPageSlots, tile + keys + i % kPageSlots * v_stride, head.beta[i], span.frame});
  }
}

// One row and query head.
void AttendLine(const AttendParams& params, const SequenceRows& sequence, int64_t row, int head) {
  const LayerStreams& streams = params.layout->layer(params.layer);
  const int kv_head = head / (params.q_heads / streams.kv_heads);
  const int64_t position = sequence.first_position + row;
  std::vector<Slot> slots;
  for (const Span& span : sequence.spans) {
    if (span.sparse.empty()) {
      AddDense(params, span, kv_head, position, slots);
    } else {
      AddSparse(params, span, kv_head, position, slots);
    }
  }
  const int64_t batch_row = sequence.first_row + row;
  const float* query = params.q + batch_row * params.q_stride + head * streams.k_width;
  std::vector<float> rotated(query, query + streams.k_width);
  std::vector<double> scores(slots.size());
  double max = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (params.rope->rotated() != 0 && (i == 0 || slots[i].frame != slots[i - 1].frame)) {
      params.rope->Rotate(query, streams.k_width, position - slots[i].frame, rotated.data());
    }
    double dot = 0;
    for (int d = 0; d < streams.k_width; ++d) {
      dot += static_cast<double>(rotated[d]) * slots[i].key[d * kPageSlots];
    }
    scores[i] = dot * params.scale + slots[i].beta;
    max = std::max(max, scores[i]);
  }
  std::vector<double> out(streams.v_width, 0.0);
  double sum = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const double p = std::exp(scores[i] - max);
    sum += p;
    for (int d = 0; d < streams.v_width; ++d) out[d] += p * slots[i].value[d];
  }
  if (params.log_sum_exp != nullptr) {
    params.log_sum_exp[batch_row * params.q_heads + head] = static_cast<float>(max + std::log(sum));
  }
  float* to = params.out + (batch_row * params.q_heads + head) * streams.v_width;
  for (int d = 0; d < streams.v_width; ++d) {
    to[d] = slots.empty() ? 0.0f : static_cast<float>(out[d] / sum);
  }
}

}  // namespace

void Attend(base::ThreadPool& pool, const AttendParams& params) {
  for (const SequenceRows& sequence : params.sequences) {
    pool.ParallelFor(sequence.rows * params.q_heads, [&](int64_t item, int) {
      AttendLine(params, sequence, item / params.q_heads, static_cast<int>(item % params.q_heads));
    });
  }
}

}  // namespace kvasir::kernels::reference
