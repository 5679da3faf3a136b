// RecordCipher: AES-256-GCM for one stored record, under a subkey that belongs to that record
// alone.
//
// The subkey is HKDF-SHA256(data key, salt, info) (RFC 5869) with a random salt, so nonces only
// have to differ within a record: they are counters. Restoring an old copy and writing on never
// repeats a (key, nonce) pair. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace kvasir::kv {

using DataKey = std::array<uint8_t, 32>;

inline constexpr size_t kSaltBytes = 16;
inline constexpr size_t kTagBytes = 16;

class RecordCipher {
 public:
  RecordCipher(const DataKey& key, std::span<const uint8_t> salt, std::span<const uint8_t> info);
  ~RecordCipher();
  RecordCipher(RecordCipher&&) noexcept;
  RecordCipher& operator=(RecordCipher&&) noexcept;

  using Bytes = std::span<const uint8_t>;

  // Writes the sealed form of the concatenated `pieces` to out[0, total + kTagBytes). Each nonce
  // may be used once.
  void Seal(uint32_t nonce, Bytes aad, std::span<const Bytes> pieces, uint8_t* out);
  // Writes the content to out[0, sealed.size() − kTagBytes) and returns true when the tag is right.
  // Otherwise returns false; what `out` then holds must not be used. REQUIRES: sealed holds a tag.
  bool Open(uint32_t nonce, Bytes aad, Bytes sealed, uint8_t* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::kv
