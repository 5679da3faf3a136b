#include "engine/kernels/kv_layout.h"

#include "engine/base/check.h"

namespace kvasir::kernels {
namespace {

constexpr size_t kAlign = 64;

size_t RoundUp(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

}  // namespace

KvLayout::KvLayout(KvType type, std::span<const LayerStreams> layers)
    : type_(type), layers_(layers.begin(), layers.end()), offsets_(layers.size()) {
  const size_t element = KvBytes(type);
  size_t at = 0;
  for (int i = 0; i < this->layers(); ++i) {
    const LayerStreams& streams = layers_[i];
    KVASIR_CHECK(streams.kv_heads > 0 && streams.k_width > 0 && streams.v_width > 0);
    Offsets& o = offsets_[i];
    o.keys_step = RoundUp(element * k_stride(i) * kPageSlots);
    o.values_step = RoundUp(element * v_stride(i) * kPageSlots);
    o.keys = at;
    o.values = o.keys + streams.kv_heads * o.keys_step;
    at = o.values + streams.kv_heads * o.values_step;
  }
  resident_bytes_ = at;
  for (int i = 0; i < this->layers(); ++i) {
    Offsets& o = offsets_[i];
    o.raw_step = RoundUp(element * layers_[i].k_width * kPageSlots);
    o.raw = at;
    at += layers_[i].kv_heads * o.raw_step;
  }
  tail_bytes_ = at;
}

}  // namespace kvasir::kernels
