// Geometry: what a model's attention state consists of, layer by layer. Two states fit the same
// model only when their geometries are equal; its digest is part of model_id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"

namespace kvasir::kv {

inline constexpr int kLayersMax = 1024;
inline constexpr int kKvHeadsMax = 1024;
inline constexpr int kWidthMax = 65536;
inline constexpr int kRopeKindsMax = 64;

enum class StreamKind : uint8_t { kFull = 0, kSlidingWindow = 1 };

// One layer. Keys are stored after bias and K-norm, before RoPE.
struct Stream {
  StreamKind kind = StreamKind::kFull;
  int32_t kv_heads = 0;
  int32_t k_width = 0;  // elements of a key
  int32_t v_width = 0;  // elements of a value
  int32_t rotated = 0;  // leading elements of a key that RoPE turns
  int32_t rope = 0;     // index into Geometry::ropes
  int32_t window = 0;   // tokens seen by a sliding-window layer, itself included; 0 for kFull

  bool operator==(const Stream&) const = default;
};

// One RoPE kind.
struct RopeKind {
  bool interleaved = false;
  double base = 0;
  double scale = 1;
  std::vector<float> factors;  // empty or [rotated/2]

  bool operator==(const RopeKind&) const = default;
};

struct Geometry {
  std::vector<Stream> layers;
  std::vector<RopeKind> ropes;

  // Whether a model can have this geometry: at least one layer and head, every number within the
  // bounds above, RoPE references that exist and fit. Errors: InvalidArgument (names layer and
  // number).
  base::Status Validate() const;
  // Bytes of one token's raw keys and values at `element_bytes` an element, all layers.
  int64_t TokenBytes(int element_bytes) const;
  base::Digest Digest() const;
  bool operator==(const Geometry&) const = default;
};

}  // namespace kvasir::kv
