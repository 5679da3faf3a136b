#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/kernels/reference/reference_backend.h"
#include "tests/engine/kernels/attention_world_parts.h"

namespace kvasir::kernels::testing {
namespace {

// Widens the elements of (layer kLayer, head) of a page.
void WidenPage(const KvLayout& from, const KvLayout& to, const std::byte* page, std::byte* out) {
  const LayerStreams& streams = from.layer(kLayer);
  for (int head = 0; head < streams.kv_heads; ++head) {
    const auto keys = FromElements(from.type(), page + from.keys_offset(kLayer, head),
                                   int64_t{from.k_stride(kLayer)} * kPageSlots);
    const auto values = FromElements(from.type(), page + from.values_offset(kLayer, head),
                                     int64_t{from.v_stride(kLayer)} * kPageSlots);
    std::memcpy(out + to.keys_offset(kLayer, head), keys.data(), keys.size() * 4);
    std::memcpy(out + to.values_offset(kLayer, head), values.data(), values.size() * 4);
  }
}

}  // namespace

std::vector<float> AttentionWorld::Reference(base::ThreadPool& pool) {
  const KvLayout wide(KvType::kF32, Streams(spec_));
  const auto backend = MakeReferenceBackend(pool);
  std::vector<std::unique_ptr<Buffer>> buffers;
  const int64_t tile = int64_t{kPageSlots} * (layout_.k_stride(kLayer) + layout_.v_stride(kLayer));
  std::vector<std::vector<Span>> spans(sequences_.size());
  std::vector<std::vector<std::vector<const std::byte*>>> pages(sequences_.size());
  std::vector<std::vector<std::vector<SparseHead>>> heads(sequences_.size());
  std::vector<SequenceRows> batch;
  std::vector<float> q;
  int64_t rows = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& s = *sequences_[i];
    spans[i] = s.spans;
    pages[i].resize(s.spans.size());
    heads[i].resize(s.spans.size());
    for (size_t j = 0; j < s.spans.size(); ++j) {
      for (const std::byte* page : s.spans[j].pages) {
        buffers.push_back(backend->Allocate(wide.resident_bytes()));
        WidenPage(layout_, wide, page, buffers.back()->data());
        pages[i][j].push_back(buffers.back()->data());
      }
      spans[i][j].pages = pages[i][j];
      for (SparseHead head : s.spans[j].sparse) {
        const int64_t elements = (head.slots + kPageSlots - 1) / kPageSlots * tile;
        const auto values = FromElements(layout_.type(), head.tiles, elements);
        buffers.push_back(backend->Allocate(elements * 4));
        std::copy(values.begin(), values.end(), buffers.back()->floats());
        head.tiles = buffers.back()->data();
        heads[i][j].push_back(head);
      }
      spans[i][j].sparse = heads[i][j];
    }
    batch.push_back({.first_row = rows,
                     .rows = s.spec.rows,
                     .first_position = s.spec.first_position,
                     .spans = spans[i]});
    for (int64_t row = 0; row < s.spec.rows; ++row) {
      for (int head = 0; head < spec_.q_heads; ++head) {
        const auto query = RowOf(Stream(s.base, kQueries, head), s.spec.first_position + row,
                                 spec_.k_width, spec_.q_size);
        q.insert(q.end(), query.begin(), query.end());
      }
    }
    rows += s.spec.rows;
  }
  std::vector<float> out(rows * spec_.q_heads * spec_.v_width);
  std::vector<float> log_sum_exp(rows * spec_.q_heads);
  backend->Attend({.layout = &wide,
                   .layer = kLayer,
                   .rope = &rope_,
                   .sequences = batch,
                   .q = q.data(),
                   .q_stride = int64_t{spec_.q_heads} * spec_.k_width,
                   .q_heads = spec_.q_heads,
                   .scale = spec_.scale,
                   .window = spec_.window,
                   .out = out.data(),
                   .log_sum_exp = log_sum_exp.data()});
  return Interleaved(out, log_sum_exp);
}

// With u = 2^-24 and n slots: a rotated element is at most √2 its size; a score of width k is a
// chain of k roundings, of the query's rotation (2) and of scale and beta (2), each relative to
// Σ|q·k|; a weight is off by e^(2·error) − 1 and 4 roundings of exp; sum and output are chains of
// at most n roundings and a merge (4) per split. All relative to the largest value. A log-sum-exp
// is off by the score's error, the sum's, and a rounding of its own size.
float AttentionWorld::Tolerance() const {
  const double u = 0x1p-24;
  const double products = 2.0 * spec_.q_size * spec_.k_size * spec_.k_width * spec_.scale + 1.0;
  const double score = products * (spec_.k_width + 4) * u;
  double slots = 0;
  for (const auto& s : sequences_) {
    double n = static_cast<double>(s->spec.first_position + s->spec.rows);
    for (const SpanSpec& span : s->spec.mounts) n += span.sparse_slots + 16 * spec_.kv_heads;
    slots = std::max(slots, n);
  }
  const double weight = std::expm1(2 * score) + 8 * u;
  return static_cast<float>(spec_.v_size * (2 * weight + (2 * slots + slots / 32 + 16) * u));
}

}  // namespace kvasir::kernels::testing
