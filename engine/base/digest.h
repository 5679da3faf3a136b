// Digest: SHA-256 of bytes; how weights, states and contexts are named by content.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvasir::base {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  // 64 lower-case hexadecimal digits.
  std::string Hex() const;
  auto operator<=>(const Digest&) const = default;
};

// Hasher: SHA-256 over everything added, in order. Threads: one at a time.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void Add(std::span<const uint8_t> bytes);
  // The length (8 bytes, little-endian), then the bytes: two texts never run together.
  void AddText(std::string_view text);
  // Eight bytes, little-endian.
  void AddInt(int64_t value);
  // The digest of what was added. REQUIRES: not called before.
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest Sha256(std::span<const uint8_t> bytes);

// Lower-case hexadecimal digits of `bytes`.
std::string ToHex(std::span<const uint8_t> bytes);

inline std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace kvasir::base
