// The bytes that operator new handed out: shows that refusing a file allocates nothing in
// proportion to a number in it.
#pragma once

#include <cstdint>

namespace kvasir::gguf {

// All bytes requested from operator new in this process so far, freed or not.
uint64_t AllocatedBytes();

}  // namespace kvasir::gguf
