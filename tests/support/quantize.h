// Quantize: floats to the block types of GGUF, by plain rounding to the nearest level. Only for
// making test models: no search for better scales.
#pragma once

#include <span>
#include <string>

#include "engine/gguf/types.h"

namespace kvasir::testing {

// The blocks of `values`. Supported: F32, Q8_0, Q4_1, Q5_0, Q4_K, Q6_K. The error of an element is
// at most one level of its block. REQUIRES: a whole number of blocks, finite values below 6e4.
std::string Quantize(gguf::TensorType type, std::span<const float> values);

}  // namespace kvasir::testing
