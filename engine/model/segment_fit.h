// Between segments (raw keys and values in host memory, [slots, width] per head) and the pages
// attention reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/kv/segment.h"

namespace kvasir::model {

class Model;

// Whether pages also receive the keys before rotation (tail pages do, mounts do not).
enum class RawKeys { kKeep, kDrop };

// OK when `segment` can be read by `model` as an exact state.
// Errors: InvalidArgument (geometry or element type differ, not exact, positions past the model's
// RoPE table).
base::Status CheckFits(const Model& model, const kv::KvSegment& segment);

// Writes all heads of `segment` into pages; pages[i] holds local positions [(page_first + i) *
// kPageSlots, …). REQUIRES: CheckFits; the pages cover the segment's local positions.
void MountHeads(const Model& model, const kv::KvSegment& segment, std::span<std::byte* const> pages,
                int64_t page_first, RawKeys raw);

// Raw keys and values of local positions [begin, begin + slots) of tail pages, all heads,
// layer-major.
std::vector<kv::HeadSlots> ExtractHeads(const Model& model, std::span<std::byte* const> pages,
                                        int64_t page_first, int64_t begin, int64_t slots);

}  // namespace kvasir::model
