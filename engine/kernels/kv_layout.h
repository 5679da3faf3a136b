// KvLayout: where the keys and values of one page of slots stand in memory, and Span: what one
// sequence can see.
//
// A *page* holds kPageSlots consecutive local positions of all layers and KV heads, in one
// allocation. Page p of a span holds local positions [p * kPageSlots, (p + 1) * kPageSlots). Per
// (layer, KV head) it has, in elements of KvType:
//   keys    [k_stride, kPageSlots]   rotated at their local positions; *transposed*, so that vector
//   lanes are slots values  [kPageSlots, v_stride] raw     [kPageSlots, k_width]    the same keys
//   before rotation (after bias and K-norm), only in pages that are
//                                    still written; what a segment is cut from
// Strides are widths rounded up to 16; padding is zero. Every array starts on 64 bytes. All
// resident arrays (keys, values) come before all raw arrays, so an immutable mount allocates
// resident_bytes() a page and a live tail tail_bytes().
//
// Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::kernels {

enum class KvType { kF16, kF32 };

inline constexpr int kPageSlots = 64;
// Logical positions of one split of the reduction grid: split s covers [s * kSplitPositions, (s +
// 1) * kSplitPositions).
inline constexpr int kSplitPositions = 256;

// Bytes of one element.
inline constexpr int KvBytes(KvType type) { return type == KvType::kF16 ? 2 : 4; }

// One layer's streams.
struct LayerStreams {
  int kv_heads = 0;
  int k_width = 0;  // elements of a key
  int v_width = 0;  // elements of a value
};

class KvLayout {
 public:
  // REQUIRES: every number of `layers` is positive.
  KvLayout(KvType type, std::span<const LayerStreams> layers);

  KvType type() const { return type_; }
  int layers() const { return static_cast<int>(layers_.size()); }
  const LayerStreams& layer(int layer) const { return layers_[layer]; }
  int k_stride(int layer) const { return (layers_[layer].k_width + 15) / 16 * 16; }
  int v_stride(int layer) const { return (layers_[layer].v_width + 15) / 16 * 16; }

  size_t resident_bytes() const { return resident_bytes_; }
  size_t tail_bytes() const { return tail_bytes_; }

  // Byte offsets inside a page.
  size_t keys_offset(int layer, int kv_head) const {
    return offsets_[layer].keys + kv_head * offsets_[layer].keys_step;
  }
  size_t values_offset(int layer, int kv_head) const {
    return offsets_[layer].values + kv_head * offsets_[layer].values_step;
  }
  size_t raw_offset(int layer, int kv_head) const {
    return offsets_[layer].raw + kv_head * offsets_[layer].raw_step;
  }

 private:
  struct Offsets {
    size_t keys = 0, keys_step = 0, values = 0, values_step = 0, raw = 0, raw_step = 0;
  };
  KvType type_;
  std::vector<LayerStreams> layers_;
  std::vector<Offsets> offsets_;
  size_t resident_bytes_ = 0;
  size_t tail_bytes_ = 0;
};

// The slots of one (layer, KV head) of a compacted segment. Slots stand in tiles of kPageSlots;
// tile t holds keys [k_stride, kPageSlots] then values [kPageSlots, v_stride], elements of KvType.
// The count is padded to a multiple of 16 with slots whose beta is −infinity.
struct SparseHead {
  const std::byte* tiles = nullptr;  // 64-byte aligned
  const float* beta = nullptr;       // [slots] added to the scaled logit
  int32_t slots = 0;                 // a multiple of 16
};

// Span: slots that a sequence attends to, in one frame.
//
// Dense: one slot per position of [begin, end), on the reduction grid of *logical* positions shared
// by all dense spans of the sequence. Sparse (a compacted segment): its own slots, on a grid of
// kSplitPositions over its own slots; rows at positions ≥ end see all of it, other rows nothing of
// it, and a window does not cut it. A query at logical position m is rotated to m − frame before it
// meets the span's keys; keys are never moved.
struct Span {
  int64_t frame = 0;  // logical position − local position
  int64_t begin = 0;  // logical positions [begin, end)
  int64_t end = 0;
  // Dense: pages[i] holds local positions [(page_first + i) * kPageSlots, …). REQUIRES: covers
  // [begin, end) − frame.
  std::span<const std::byte* const> pages;
  int64_t page_first = 0;
  // Dense: bit j of visible[i] says whether slot j of pages[i] may be attended to; empty: all.
  std::span<const uint64_t> visible;
  // Sparse when not empty: [layers * max kv_heads of a layer], index layer * sparse_heads +
  // kv_head.
  std::span<const SparseHead> sparse;
  int sparse_heads = 0;
};

}  // namespace kvasir::kernels
