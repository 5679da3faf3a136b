// GgufWriter: makes small GGUF files (version 3, alignment 32) for tests.
// Threads: one at a time.
// Source: GGUF specification (ggml docs/gguf.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/gguf/types.h"

namespace kvasir::testing {

class GgufWriter {
 public:
  void AddU32(std::string_view key, uint32_t value);
  void AddF32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, std::span<const std::string> values);
  void AddI32s(std::string_view key, std::span<const int32_t> values);
  // `dims` as in the file: columns first. REQUIRES: `data` is of the size that type and dims give.
  void AddTensor(std::string_view name, std::vector<int64_t> dims, gguf::TensorType type,
                 std::string data);

  // The whole file.
  std::string Bytes() const;

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> dims;
    gguf::TensorType type;
    std::string data;
  };
  void AddKey(std::string_view key, uint32_t type);

  uint64_t keys_ = 0;
  std::string metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace kvasir::testing
