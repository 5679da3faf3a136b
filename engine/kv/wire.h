// Little-endian numbers to and from bytes, for the codec's header. Internal.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace kvasir::kv {

static_assert(std::endian::native == std::endian::little, "arrays are stored as they stand");

class WireWriter {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void Put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void PutBytes(std::span<const uint8_t> bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads past the end give zeros and make ok() false for good.
class WireReader {
 public:
  explicit WireReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    if (Has(1, sizeof(T))) {
      std::memcpy(&value, bytes_.data(), sizeof(T));
      bytes_ = bytes_.subspan(sizeof(T));
    }
    return value;
  }
  void GetBytes(std::span<uint8_t> out) {
    if (!Has(1, out.size())) return;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data(), out.size());
    bytes_ = bytes_.subspan(out.size());
  }
  // Whether `count` items of `item_bytes` (under 2^16) are left. When not, ok() becomes false: call
  // it before making room for them.
  bool Has(uint64_t count, uint64_t item_bytes) {
    ok_ = ok_ && count <= bytes_.size() && count * item_bytes <= bytes_.size();
    return ok_;
  }
  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  bool ok_ = true;
};

}  // namespace kvasir::kv
