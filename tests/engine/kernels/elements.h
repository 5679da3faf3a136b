// Test data: numbers that are a fixed function of where they stand, and elements of KvType.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/kernels/kv_layout.h"

namespace kvasir::kernels::testing {

// Uniform in ± size.
float ValueAt(uint64_t stream, int64_t position, int64_t index, float size);
// `values` as elements of `type`, rounded to nearest even, and back.
std::vector<std::byte> ToElements(KvType type, const std::vector<float>& values);
std::vector<float> FromElements(KvType type, const std::byte* elements, int64_t count);

}  // namespace kvasir::kernels::testing
