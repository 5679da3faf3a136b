// The parts of a GGUF file, read in the order in which they lie. Inner header of this module; the
// contract is file.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "engine/gguf/file.h"
#include "engine/gguf/reader.h"

namespace kvasir::gguf {

// Limits beyond those that the bytes present set.
inline constexpr uint64_t kKeysMax = uint64_t{1} << 16;
inline constexpr uint64_t kKeyBytesMax = 65535;                 // the specification's
inline constexpr uint64_t kArrayValuesMax = uint64_t{1} << 24;  // all arrays together
inline constexpr uint64_t kTensorsMax = uint64_t{1} << 16;
inline constexpr uint64_t kTensorNameBytesMax = 64;  // the specification's
inline constexpr uint32_t kTensorDimsMax = 4;        // the specification's
inline constexpr uint64_t kAlignmentDefault = 32;
inline constexpr uint64_t kAlignmentMin = 8;  // the specification's

struct Header {
  uint32_t version = 0;
  uint64_t tensor_count = 0;  // claimed: not yet checked against anything
  uint64_t key_count = 0;     // claimed
};

using Metadata = std::map<std::string_view, Value>;

// Magic, version 2 or 3, counts.
StatusOr<Header> ReadHeader(Reader& reader);

// `key_count` key-values; views into the reader's bytes.
StatusOr<Metadata> ReadMetadata(Reader& reader, uint64_t key_count);

// `tensor_count` entries of the tensor table; then places every tensor's data in `bytes`, the whole
// file: aligned, inside the file, no two overlapping.
StatusOr<std::vector<Tensor>> ReadTensors(Reader& reader, uint64_t tensor_count, uint64_t alignment,
                                          std::span<const uint8_t> bytes);

}  // namespace kvasir::gguf
