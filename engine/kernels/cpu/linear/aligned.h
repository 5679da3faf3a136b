// AlignedBytes: owned, zeroed memory on cache-line boundaries; on 2 MiB boundaries with huge pages
// advised when it is large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace kvasir::kernels::linear {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // `size` zero bytes, or data() == nullptr when there is no memory (or size is 0).
  explicit AlignedBytes(size_t size);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kvasir::kernels::linear
