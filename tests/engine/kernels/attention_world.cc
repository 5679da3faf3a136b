#include "tests/engine/kernels/attention_world.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/engine/kernels/attention_world_parts.h"

namespace kvasir::kernels::testing {
namespace {

constexpr int64_t kPositionsMax = 4096;

bool Visible(const SpanSpec& span, uint64_t base, int64_t position) {
  return !span.masked || ValueAt(Stream(base, kMask, 0), position, 0, 1.0f) < 0.34f;
}

// Every element of layer kLayer that a row could read becomes NaN.
void Poison(const KvLayout& layout, std::byte* page) {
  const LayerStreams& streams = layout.layer(kLayer);
  const std::vector<std::byte> nan =
      ToElements(layout.type(), {std::numeric_limits<float>::quiet_NaN()});
  for (int head = 0; head < streams.kv_heads; ++head) {
    std::byte* keys = page + layout.keys_offset(kLayer, head);
    std::byte* values = page + layout.values_offset(kLayer, head);
    for (int i = 0; i < streams.k_width * kPageSlots; ++i) {
      std::memcpy(keys + i * nan.size(), nan.data(), nan.size());
    }
    for (int slot = 0; slot < kPageSlots; ++slot) {
      for (int d = 0; d < streams.v_width; ++d) {
        std::memcpy(values + (slot * layout.v_stride(kLayer) + d) * nan.size(), nan.data(),
                    nan.size());
      }
    }
  }
}

void PutTransposed(const std::vector<std::byte>& key, size_t element, int slot, std::byte* keys) {
  for (size_t d = 0; d * element < key.size(); ++d) {
    std::memcpy(keys + (d * kPageSlots + slot) * element, key.data() + d * element, element);
  }
}

}  // namespace

AttentionWorld::AttentionWorld(const WorldSpec& spec, Backend& backend)
    : spec_(spec),
      backend_(backend),
      layout_(backend.kv_type(), Streams(spec)),
      rope_(RopeOptions{.rotated = spec.rotated,
                        .interleaved = spec.interleaved,
                        .base = 10000.0,
                        .positions_max = kPositionsMax}) {
  for (size_t i = 0; i < spec.sequences.size(); ++i) {
    auto sequence = std::make_unique<Sequence>();
    Sequence& s = *sequence;
    s.spec = spec.sequences[i];
    s.base = 100 * i;
    const size_t spans = s.spec.mounts.size() + 1;
    s.pages.resize(spans);
    s.visible.resize(spans);
    s.heads.resize(spans);
    for (size_t j = 0; j < s.spec.mounts.size(); ++j) {
      const SpanSpec& mount = s.spec.mounts[j];
      s.spans.emplace_back();
      // Spans that continue each other in one frame hold parts of the same stream.
      const uint64_t stream = s.base + 1 + static_cast<uint64_t>(mount.frame % 31);
      mount.sparse_slots > 0 ? BuildSparse(mount, stream, s) : BuildMount(mount, stream, s);
    }
    Span tail;
    tail.begin = s.spec.tail_begin;
    tail.end = s.spec.first_position + s.spec.rows;
    tail.page_first = tail.begin / kPageSlots;
    for (int64_t page = tail.page_first; page * kPageSlots < tail.end; ++page) {
      s.buffers.push_back(backend.Allocate(layout_.tail_bytes()));
      s.tail_pages.push_back(s.buffers.back()->data());
      s.pages.back().push_back(s.tail_pages.back());
    }
    tail.pages = s.pages.back();
    s.spans.push_back(tail);
    sequences_.push_back(std::move(sequence));
  }
}

AttentionWorld::~AttentionWorld() = default;

void AttentionWorld::BuildMount(const SpanSpec& span, uint64_t stream, Sequence& s) {
  const size_t index = s.spans.size() - 1;
  Span& out = s.spans.back();
  const int64_t local = span.begin - span.frame;
  const int64_t slots = span.end - span.begin;
  out.frame = span.frame;
  out.begin = span.begin;
  out.end = span.end;
  out.page_first = local / kPageSlots;
  std::vector<std::byte*> pages;
  for (int64_t page = out.page_first; page * kPageSlots < local + slots; ++page) {
    s.buffers.push_back(backend_.Allocate(layout_.resident_bytes()));
    pages.push_back(s.buffers.back()->data());
    Poison(layout_, pages.back());
  }
  s.pages[index].assign(pages.begin(), pages.end());
  out.pages = s.pages[index];
  if (span.masked) s.visible[index].assign(pages.size(), 0);
  const LayerStreams& streams = layout_.layer(kLayer);
  for (int64_t i = 0; i < slots; ++i) {
    const int64_t m = local + i;
    if (!Visible(span, stream, m)) continue;  // stays NaN
    if (span.masked) s.visible[index][m / kPageSlots - out.page_first] |= uint64_t{1} << (m % 64);
    for (int head = 0; head < streams.kv_heads; ++head) {
      const auto raw = ToElements(
          layout_.type(), RowOf(Stream(stream, kKeys, head), m, streams.k_width, spec_.k_size));
      const auto value = ToElements(
          layout_.type(), RowOf(Stream(stream, kValues, head), m, streams.v_width, spec_.v_size));
      backend_.Mount({.layout = &layout_,
                      .layer = kLayer,
                      .kv_head = head,
                      .rope = &rope_,
                      .pages = pages,
                      .page_first = out.page_first,
                      .first_local = m,
                      .slots = 1,
                      .raw_keys = raw.data(),
                      .values = value.data()});
    }
  }
  out.visible = s.visible[index];
}

void AttentionWorld::BuildSparse(const SpanSpec& span, uint64_t stream, Sequence& s) {
  const size_t index = s.spans.size() - 1;
  Span& out = s.spans.back();
  const LayerStreams& streams = layout_.layer(kLayer);
  const size_t element = KvBytes(layout_.type());
  const size_t keys_bytes = element * layout_.k_stride(kLayer) * kPageSlots;
  const size_t tile_bytes = keys_bytes + element * layout_.v_stride(kLayer) * kPageSlots;
  out.frame = span.frame;
  out.begin = span.begin;
  out.end = span.end;
  out.sparse_heads = std::max(2, streams.kv_heads);
  s.heads[index].resize(layout_.layers() * out.sparse_heads);
  for (int head = 0; head < streams.kv_heads; ++head) {
    const int slots = span.sparse_slots + 16 * head;
    const int tiles = (slots + kPageSlots - 1) / kPageSlots;
    s.buffers.push_back(backend_.Allocate(tiles * tile_bytes));
    std::byte* memory = s.buffers.back()->data();
    std::vector<float>& beta = s.betas.emplace_back(slots);
    for (int i = 0; i < slots; ++i) {
      const bool padding = i >= slots - 5;
      const int64_t m = span.begin - span.frame + (span.end - span.begin) * i / std::max(1, slots);
      std::vector<float> key = FromElements(
          layout_.type(),
          ToElements(layout_.type(),
                     RowOf(Stream(stream, kKeys, head), m, streams.k_width, spec_.k_size))
              .data(),
          streams.k_width);
      if (rope_.rotated() > 0) rope_.Rotate(key.data(), streams.k_width, m, key.data());
      std::vector<float> value =
          RowOf(Stream(stream, kValues, head), m, streams.v_width, spec_.v_size);
      beta[i] = ValueAt(Stream(stream, kBeta, head), m, i, 1.0f);
      if (padding) {
        beta[i] = -std::numeric_limits<float>::infinity();
        std::fill(key.begin(), key.end(), std::numeric_limits<float>::quiet_NaN());
        std::fill(value.begin(), value.end(), std::numeric_limits<float>::quiet_NaN());
      }
      std::byte* tile = memory + i / kPageSlots * tile_bytes;
      PutTransposed(ToElements(layout_.type(), key), element, i % kPageSlots, tile);
      const auto elements = ToElements(layout_.type(), value);
      std::memcpy(tile + keys_bytes + i % kPageSlots * layout_.v_stride(kLayer) * element,
                  elements.data(), elements.size());
    }
    s.heads[index][kLayer * out.sparse_heads + head] = {.tiles = memory, .slots = slots};
  }
  for (int head = 0; head < streams.kv_heads; ++head) {
    s.heads[index][kLayer * out.sparse_heads + head].beta =
        s.betas[s.betas.size() - streams.kv_heads + head].data();
  }
  out.sparse = s.heads[index];
}

// One step: appends and attends the given rows; `out` [rows of the step, q_heads, v_width].
void AttentionWorld::Step(std::vector<SequenceRows>& rows, std::vector<float>& out) {
  const LayerStreams& streams = layout_.layer(kLayer);
  const int64_t q_stride = spec_.q_heads * spec_.k_width + 3;
  const int64_t k_stride = streams.kv_heads * streams.k_width + 1;
  const int64_t v_stride = streams.kv_heads * streams.v_width + 2;
  const int64_t count = rows.back().first_row + rows.back().rows;
  std::vector<float> q(count * q_stride), k(count * k_stride), v(count * v_stride);
  for (const SequenceRows& sequence : rows) {
    const auto owner = std::find_if(sequences_.begin(), sequences_.end(), [&](const auto& s) {
      return s->spans.data() == sequence.spans.data();
    });
    const uint64_t base = (*owner)->base;
    for (int64_t i = 0; i < sequence.rows; ++i) {
      const int64_t m = sequence.first_position + i;
      const int64_t row = sequence.first_row + i;
      for (int head = 0; head < spec_.q_heads; ++head) {
        const auto query = RowOf(Stream(base, kQueries, head), m, spec_.k_width, spec_.q_size);
        std::copy(query.begin(), query.end(), q.begin() + row * q_stride + head * spec_.k_width);
      }
      for (int head = 0; head < streams.kv_heads; ++head) {
        const auto key = RowOf(Stream(base + 1, kKeys, head), m, streams.k_width, spec_.k_size);
        const auto value = RowOf(Stream(base + 1, kValues, head), m, streams.v_width, spec_.v_size);
        std::copy(key.begin(), key.end(), k.begin() + row * k_stride + head * streams.k_width);
        std::copy(value.begin(), value.end(), v.begin() + row * v_stride + head * streams.v_width);
      }
    }
  }
  backend_.Append({.layout = &layout_,
                   .layer = kLayer,
                   .rope = &rope_,
                   .sequences = rows,
                   .k = k.data(),
                   .v = v.data(),
                   .k_stride = k_stride,
                   .v_stride = v_stride});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> outputs(count * spec_.q_heads * spec_.v_width, nan);
  std::vector<float> log_sum_exp(count * spec_.q_heads, nan);
  backend_.Attend({.layout = &layout_,
                   .layer = kLayer,
                   .rope = &rope_,
                   .sequences = rows,
                   .q = q.data(),
                   .q_stride = q_stride,
                   .q_heads = spec_.q_heads,
                   .scale = spec_.scale,
                   .window = spec_.window,
                   .out = outputs.data(),
                   .log_sum_exp = log_sum_exp.data()});
  out = Interleaved(outputs, log_sum_exp);
}

std::vector<float> AttentionWorld::Run(const RunOptions& options) {
  const int64_t line = int64_t{spec_.q_heads} * (spec_.v_width + 1);
  std::vector<int64_t> first_out(sequences_.size());  // row of the result
  int64_t total = 0;
  int64_t rows_max = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& s = *sequences_[i];
    for (std::byte* page : s.tail_pages) Poison(layout_, page);
    first_out[i] = total;
    total += s.spec.rows;
    rows_max = std::max(rows_max, s.spec.rows);
  }
  std::vector<float> result(total * line);
  const auto step = [&](size_t from, size_t to, int64_t row_first, int64_t row_end) {
    std::vector<SequenceRows> batch;
    std::vector<size_t> owners;
    int64_t first_row = 0;
    for (size_t i = from; i < to; ++i) {
      Sequence& s = *sequences_[i];
      const bool context = row_first < 0;
      const int64_t begin = context ? s.spec.tail_begin : s.spec.first_position + row_first;
      const int64_t end =
          context ? s.spec.first_position : s.spec.first_position + std::min(row_end, s.spec.rows);
      if (begin >= end) continue;
      batch.push_back({.first_row = first_row,
                       .rows = end - begin,
                       .first_position = begin,
                       .spans = s.spans,
                       .tail_pages = s.tail_pages,
                       .tail_page_first = s.spec.tail_begin / kPageSlots});
      owners.push_back(i);
      first_row += end - begin;
    }
    if (batch.empty()) return;
    std::vector<float> out;
    Step(batch, out);
    if (row_first < 0) return;
    for (size_t i = 0; i < batch.size(); ++i) {
      std::copy_n(out.begin() + batch[i].first_row * line, batch[i].rows * line,
                  result.begin() + (first_out[owners[i]] + row_first) * line);
    }
  };
  const int64_t chunk = options.chunk == 0 ? rows_max : options.chunk;
  const size_t group = options.one_by_one ? 1 : sequences_.size();
  for (size_t i = 0; i < sequences_.size(); i += group) {
    step(i, i + group, -1, 0);
    for (int64_t row = 0; row < rows_max; row += chunk) step(i, i + group, row, row + chunk);
  }
  return result;
}

std::vector<std::byte*> AttentionWorld::TailPages(size_t i) const {
  return sequences_[i]->tail_pages;
}

}  // namespace kvasir::kernels::testing
