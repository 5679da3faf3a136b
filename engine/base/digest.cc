#include "engine/base/digest.h"

#include <openssl/evp.h>

#include "engine/base/check.h"

namespace kvasir::base {

struct Hasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  KVASIR_CHECK(state_->context != nullptr);
  KVASIR_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Hasher::~Hasher() = default;

void Hasher::Add(std::span<const uint8_t> bytes) {
  KVASIR_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Hasher::AddInt(int64_t value) {
  std::array<uint8_t, 8> bytes;
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  Add(bytes);
}

void Hasher::AddText(std::string_view text) {
  AddInt(static_cast<int64_t>(text.size()));
  Add(AsBytes(text));
}

Digest Hasher::Finish() {
  Digest digest;
  unsigned size = 0;
  KVASIR_CHECK(EVP_DigestFinal_ex(state_->context, digest.bytes.data(), &size) == 1 && size == 32);
  return digest;
}

Digest Sha256(std::span<const uint8_t> bytes) {
  Hasher hasher;
  hasher.Add(bytes);
  return hasher.Finish();
}

std::string ToHex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string Digest::Hex() const { return ToHex(bytes); }

}  // namespace kvasir::base
