#include "engine/kernels/cpu/kv_pages.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/base/check.h"

namespace kvasir::kernels::cpu {
namespace {

// The widest key that is rotated here.
constexpr int kWidthMax = 512;

const KvKernels& KvOf(const Kernels& kernels, const KvLayout& layout) {
  return layout.type() == KvType::kF16 ? kernels.f16 : kernels.f32;
}

// Writes slot `slot` of a tile of transposed keys [k_stride, kPageSlots].
void Scatter(const std::byte* key, int width, int element, int slot, std::byte* keys) {
  std::byte* out = keys + slot * element;
  const size_t step = static_cast<size_t>(kPageSlots) * element;
  if (element == 2) {
    for (int d = 0; d < width; ++d) std::memcpy(out + d * step, key + d * 2, 2);
  } else {
    for (int d = 0; d < width; ++d) std::memcpy(out + d * step, key + d * 4, 4);
  }
}

// Rotates a raw key [width] (elements) of local position `m` into slot `slot` of `keys`.
void PlaceKey(const Kernels& kernels, const KvKernels& kv, int element, const RopeTable& rope,
              const std::byte* raw, int width, int64_t m, int slot, std::byte* keys) {
  KVASIR_CHECK(width <= kWidthMax && m >= 0);
  float head[kWidthMax];
  std::byte rounded[kWidthMax * sizeof(float)];
  const std::byte* key = raw;
  if (rope.rotated() != 0) {
    KVASIR_CHECK(m < rope.positions_max());
    kv.load(raw, width, head);
    kernels.rotate(head, width,
                   {.cos = rope.cos(m),
                    .sin = rope.sin(m),
                    .rotated = rope.rotated(),
                    .interleaved = rope.interleaved()},
                   head);
    kv.store(head, width, rounded);
    key = rounded;
  }
  Scatter(key, width, element, slot, keys);
}

// The rows of one sequence that go into one page, for one KV head.
struct AppendItem {
  const SequenceRows* sequence = nullptr;
  int kv_head = 0;
  int64_t first = 0;  // rows of the sequence
  int64_t end = 0;
};

void AppendPage(const Kernels& kernels, const AppendParams& params, const AppendItem& item) {
  const KvLayout& layout = *params.layout;
  const LayerStreams& streams = layout.layer(params.layer);
  const KvKernels& kv = KvOf(kernels, layout);
  const int element = KvBytes(layout.type());
  const SequenceRows& sequence = *item.sequence;
  const int64_t page_index =
      (sequence.first_position + item.first) / kPageSlots - sequence.tail_page_first;
  KVASIR_CHECK(page_index >= 0 && page_index < static_cast<int64_t>(sequence.tail_pages.size()));
  std::byte* page = sequence.tail_pages[page_index];
  std::byte* keys = page + layout.keys_offset(params.layer, item.kv_head);
  std::byte* values = page + layout.values_offset(params.layer, item.kv_head);
  std::byte* raw = page + layout.raw_offset(params.layer, item.kv_head);
  for (int64_t row = item.first; row < item.end; ++row) {
    const int64_t m = sequence.first_position + row;
    const int slot = static_cast<int>(m % kPageSlots);
    const float* k =
        params.k + (sequence.first_row + row) * params.k_stride + item.kv_head * streams.k_width;
    const float* v =
        params.v + (sequence.first_row + row) * params.v_stride + item.kv_head * streams.v_width;
    std::byte* raw_key = raw + static_cast<size_t>(slot) * streams.k_width * element;
    kv.store(k, streams.k_width, raw_key);
    kv.store(v, streams.v_width,
             values + static_cast<size_t>(slot) * layout.v_stride(params.layer) * element);
    PlaceKey(kernels, kv, element, *params.rope, raw_key, streams.k_width, m, slot, keys);
  }
}

// Writes the slot of local position `m`.
void MountSlot(const Kernels& kernels, const Backend::MountParams& params, int64_t m) {
  const KvLayout& layout = *params.layout;
  const LayerStreams& streams = layout.layer(params.layer);
  const int element = KvBytes(layout.type());
  const size_t key_bytes = static_cast<size_t>(streams.k_width) * element;
  const size_t value_bytes = static_cast<size_t>(streams.v_width) * element;
  const size_t value_step = static_cast<size_t>(layout.v_stride(params.layer)) * element;
  const int64_t i = m - params.first_local;
  const int64_t page_index = m / kPageSlots - params.page_first;
  KVASIR_CHECK(page_index >= 0 && page_index < static_cast<int64_t>(params.pages.size()));
  std::byte* page = params.pages[page_index];
  const int slot = static_cast<int>(m % kPageSlots);
  const std::byte* raw = params.raw_keys + i * key_bytes;
  PlaceKey(kernels, KvOf(kernels, layout), element, *params.rope, raw, streams.k_width, m, slot,
           page + layout.keys_offset(params.layer, params.kv_head));
  std::memcpy(page + layout.values_offset(params.layer, params.kv_head) + slot * value_step,
              params.values + i * value_bytes, value_bytes);
  if (!params.keep_raw) return;
  std::memcpy(page + layout.raw_offset(params.layer, params.kv_head) + slot * key_bytes, raw,
              key_bytes);
}

}  // namespace

void AppendRows(const Kernels& kernels, base::ThreadPool& pool, const AppendParams& params) {
  std::vector<AppendItem> items;
  for (const SequenceRows& sequence : params.sequences) {
    for (int64_t row = 0; row < sequence.rows;) {
      const int64_t slot = (sequence.first_position + row) % kPageSlots;
      const int64_t end = std::min(sequence.rows, row + kPageSlots - slot);
      for (int head = 0; head < params.layout->layer(params.layer).kv_heads; ++head) {
        items.push_back({&sequence, head, row, end});
      }
      row = end;
    }
  }
  pool.ParallelFor(static_cast<int64_t>(items.size()),
                   [&](int64_t item, int) { AppendPage(kernels, params, items[item]); });
}

void MountSlots(const Kernels& kernels, base::ThreadPool& pool,
                const Backend::MountParams& params) {
  const int64_t page_first = params.first_local / kPageSlots;
  const int64_t end = params.first_local + params.slots;
  const int64_t pages = params.slots == 0 ? 0 : (end - 1) / kPageSlots + 1 - page_first;
  pool.ParallelFor(pages, [&](int64_t page, int) {
    const int64_t from = std::max(params.first_local, (page_first + page) * kPageSlots);
    const int64_t to = std::min(end, (page_first + page + 1) * kPageSlots);
    for (int64_t m = from; m < to; ++m) MountSlot(kernels, params, m);
  });
}

void ExtractSlots(const Backend::ExtractParams& params) {
  const KvLayout& layout = *params.layout;
  const LayerStreams& streams = layout.layer(params.layer);
  const size_t key_bytes = static_cast<size_t>(streams.k_width) * KvBytes(layout.type());
  const size_t value_bytes = static_cast<size_t>(streams.v_width) * KvBytes(layout.type());
  const size_t value_step =
      static_cast<size_t>(layout.v_stride(params.layer)) * KvBytes(layout.type());
  for (int64_t i = 0; i < params.slots; ++i) {
    const int64_t local = params.first_local + i;
    const int64_t page_index = local / kPageSlots - params.page_first;
    KVASIR_CHECK(page_index >= 0 && page_index < static_cast<int64_t>(params.pages.size()));
    const std::byte* page = params.pages[page_index];
    const int64_t slot = local % kPageSlots;
    std::memcpy(params.raw_keys + i * key_bytes,
                page + layout.raw_offset(params.layer, params.kv_head) + slot * key_bytes,
                key_bytes);
    std::memcpy(params.values + i * value_bytes,
                page + layout.values_offset(params.layer, params.kv_head) + slot * value_step,
                value_bytes);
  }
}

}  // namespace kvasir::kernels::cpu
