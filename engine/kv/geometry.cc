#include "engine/kv/geometry.h"

#include <bit>
#include <cmath>

namespace kvasir::kv {
namespace {

base::Status CheckBound(int layer, const char* what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return base::OkStatus();
  return base::InvalidArgument("layer {}: {} is {}, allowed are {} to {}", layer, what, value, low,
                               high);
}

base::Status CheckRopeOf(int layer, const Stream& stream, const std::vector<RopeKind>& ropes) {
  KVASIR_RETURN_IF_ERROR(CheckBound(layer, "rotated", stream.rotated, 0, stream.k_width));
  if (stream.rotated % 2 != 0) {
    return base::InvalidArgument("layer {}: rotated is {}, which is odd", layer, stream.rotated);
  }
  if (stream.rotated == 0) return CheckBound(layer, "rope", stream.rope, 0, kRopeKindsMax);
  KVASIR_RETURN_IF_ERROR(
      CheckBound(layer, "rope", stream.rope, 0, static_cast<int64_t>(ropes.size()) - 1));
  const size_t factors = ropes[stream.rope].factors.size();
  if (factors != 0 && factors != static_cast<size_t>(stream.rotated / 2)) {
    return base::InvalidArgument("layer {}: {} RoPE factors for {} rotated elements", layer,
                                 factors, stream.rotated);
  }
  return base::OkStatus();
}

}  // namespace

base::Status Geometry::Validate() const {
  if (layers.empty() || layers.size() > kLayersMax) {
    return base::InvalidArgument("{} layers, allowed are 1 to {}", layers.size(), kLayersMax);
  }
  if (ropes.size() > kRopeKindsMax) {
    return base::InvalidArgument("{} RoPE kinds, at most {}", ropes.size(), kRopeKindsMax);
  }
  for (size_t i = 0; i < ropes.size(); ++i) {
    if (!(std::isfinite(ropes[i].base) && ropes[i].base > 0)) {
      return base::InvalidArgument("RoPE kind {}: base is {}", i, ropes[i].base);
    }
    if (!(std::isfinite(ropes[i].scale) && ropes[i].scale > 0)) {
      return base::InvalidArgument("RoPE kind {}: scale is {}", i, ropes[i].scale);
    }
    for (const float factor : ropes[i].factors) {
      if (!std::isfinite(factor))
        return base::InvalidArgument("RoPE kind {}: factor {}", i, factor);
    }
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    const Stream& stream = layers[i];
    KVASIR_RETURN_IF_ERROR(CheckBound(layer, "kind", static_cast<int>(stream.kind), 0,
                                      static_cast<int>(StreamKind::kSlidingWindow)));
    KVASIR_RETURN_IF_ERROR(CheckBound(layer, "kv_heads", stream.kv_heads, 1, kKvHeadsMax));
    KVASIR_RETURN_IF_ERROR(CheckBound(layer, "k_width", stream.k_width, 1, kWidthMax));
    KVASIR_RETURN_IF_ERROR(CheckBound(layer, "v_width", stream.v_width, 1, kWidthMax));
    const bool windowed = stream.kind == StreamKind::kSlidingWindow;
    KVASIR_RETURN_IF_ERROR(
        CheckBound(layer, "window", stream.window, windowed ? 1 : 0, windowed ? INT32_MAX : 0));
    KVASIR_RETURN_IF_ERROR(CheckRopeOf(layer, stream, ropes));
  }
  return base::OkStatus();
}

int64_t Geometry::TokenBytes(int element_bytes) const {
  int64_t elements = 0;
  for (const Stream& stream : layers) {
    elements += int64_t{stream.kv_heads} * (int64_t{stream.k_width} + stream.v_width);
  }
  return elements * element_bytes;
}

base::Digest Geometry::Digest() const {
  base::Hasher hasher;
  hasher.AddText("kvasir geometry 1");
  hasher.AddInt(static_cast<int64_t>(ropes.size()));
  for (const RopeKind& rope : ropes) {
    hasher.AddInt(rope.interleaved ? 1 : 0);
    hasher.AddInt(std::bit_cast<int64_t>(rope.base));
    hasher.AddInt(std::bit_cast<int64_t>(rope.scale));
    hasher.AddInt(static_cast<int64_t>(rope.factors.size()));
    for (const float factor : rope.factors) hasher.AddInt(std::bit_cast<int32_t>(factor));
  }
  hasher.AddInt(static_cast<int64_t>(layers.size()));
  for (const Stream& stream : layers) {
    hasher.AddInt(static_cast<int>(stream.kind));
    for (const int32_t number : {stream.kv_heads, stream.k_width, stream.v_width, stream.rotated,
                                 stream.rope, stream.window}) {
      hasher.AddInt(number);
    }
  }
  return hasher.Finish();
}

}  // namespace kvasir::kv
