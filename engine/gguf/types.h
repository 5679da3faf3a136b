// Element types of GGUF tensors: how many elements a block holds and how many bytes it takes.
// Source: the GGUF specification and ggml's block structures (facts: sizes, ids, field order).
#pragma once

#include <cstdint>
#include <string_view>

namespace kvasir::gguf {

// Values are ggml's type ids. Only these are accepted; a tensor of another type is refused by name.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct TypeInfo {
  std::string_view name;   // "Q4_K"
  int block_elements = 0;  // elements per block
  int block_bytes = 0;     // bytes per block
};

// The description of `type`. REQUIRES: a value of the enumeration.
const TypeInfo& Info(TensorType type);

// Whether `id` is a value of TensorType.
bool IsSupportedTypeId(uint32_t id);

// ggml's name for any type id it has defined ("IQ4_XS"), or "" for an unknown id. For error
// messages.
std::string_view NameOfTypeId(uint32_t id);

// Writes the `elements` values of the blocks at `blocks` to `out` [elements] as float32, bit-exact
// with ggml's dequantization (no fused multiply-add). REQUIRES: elements is a multiple of the block
// size.
void Dequantize(TensorType type, const uint8_t* blocks, int64_t elements, float* out);

}  // namespace kvasir::gguf
