// The worlds of the attention suite.
#pragma once

#include <vector>

#include "tests/engine/kernels/attention_world.h"

namespace kvasir::kernels::testing {

// Head ratios and widths × span layouts.
std::vector<WorldSpec> AttentionCases();

}  // namespace kvasir::kernels::testing
