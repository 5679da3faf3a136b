// Reads NumPy's .npy files, version 1.0, little-endian, C order: float32 and int32 of one or two
// dimensions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/status.h"

namespace kvasir::test {

template <typename T>
struct NpyArray {
  int64_t rows = 0;
  int64_t columns = 1;  // 1 where the file has one dimension
  std::vector<T> values;
};

// Errors: InvalidArgument (names the path and what is wrong with it).
base::StatusOr<NpyArray<float>> ReadNpyFloat(const std::filesystem::path& path);
base::StatusOr<NpyArray<int32_t>> ReadNpyInt(const std::filesystem::path& path);

}  // namespace kvasir::test
