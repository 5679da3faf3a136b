// Reader: a position in untrusted bytes that cannot leave them. Every read is checked against what
// is left before anything is added, multiplied or allocated.
//
// Threads: one at a time. Errors: InvalidArgument naming what was read and its byte offset.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::gguf {

using base::Status;
using base::StatusOr;

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return bytes_.size() - offset_; }

  // The next little-endian T. `what` names it in the error.
  template <typename T>
  StatusOr<T> Read(std::string_view what) {
    if (left() < sizeof(T)) return PastEnd(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // The next `size` bytes.
  StatusOr<std::span<const uint8_t>> ReadBytes(std::string_view what, uint64_t size);

  // A string: its length as u64, then its bytes; a view into the bytes.
  StatusOr<std::string_view> ReadString(std::string_view what);

 private:
  Status PastEnd(std::string_view what, uint64_t needed) const;

  std::span<const uint8_t> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace kvasir::gguf
