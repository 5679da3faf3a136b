#include "engine/kv/seal.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <algorithm>

#include "engine/base/check.h"

namespace kvasir::kv {
namespace {

constexpr size_t kNonceBytes = 12;
// EVP takes lengths as int.
constexpr size_t kPieceBytesMax = size_t{1} << 30;

// Fetched once: a fetch costs as much as sealing a small record.
const EVP_CIPHER* Aes256Gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  KVASIR_CHECK(cipher != nullptr);
  return cipher;
}

EVP_KDF* Hkdf() {
  static EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  KVASIR_CHECK(kdf != nullptr);
  return kdf;
}

void DeriveSubkey(const DataKey& key, std::span<const uint8_t> salt, std::span<const uint8_t> info,
                  DataKey& subkey) {
  EVP_KDF_CTX* context = EVP_KDF_CTX_new(Hkdf());
  KVASIR_CHECK(context != nullptr);
  char digest[] = "SHA256";
  const auto octets = [](const char* name, std::span<const uint8_t> bytes) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<uint8_t*>(bytes.data()),
                                             bytes.size());
  };
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                               octets(OSSL_KDF_PARAM_KEY, key), octets(OSSL_KDF_PARAM_SALT, salt),
                               octets(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  KVASIR_CHECK(EVP_KDF_derive(context, subkey.data(), subkey.size(), params) == 1);
  EVP_KDF_CTX_free(context);
}

std::array<uint8_t, kNonceBytes> NonceBytes(uint32_t nonce) {
  std::array<uint8_t, kNonceBytes> bytes{};
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<uint8_t>(nonce >> (8 * i));
  return bytes;
}

}  // namespace

struct RecordCipher::State {
  EVP_CIPHER_CTX* seal = nullptr;
  EVP_CIPHER_CTX* open = nullptr;
  DataKey subkey{};
  ~State() {
    EVP_CIPHER_CTX_free(seal);
    EVP_CIPHER_CTX_free(open);
    OPENSSL_cleanse(subkey.data(), subkey.size());
  }
};

RecordCipher::RecordCipher(const DataKey& key, std::span<const uint8_t> salt,
                           std::span<const uint8_t> info)
    : state_(std::make_unique<State>()) {
  DeriveSubkey(key, salt, info, state_->subkey);
}

RecordCipher::~RecordCipher() = default;
RecordCipher::RecordCipher(RecordCipher&&) noexcept = default;
RecordCipher& RecordCipher::operator=(RecordCipher&&) noexcept = default;

void RecordCipher::Seal(uint32_t nonce, Bytes aad, std::span<const Bytes> pieces, uint8_t* out) {
  if (state_->seal == nullptr) {
    state_->seal = EVP_CIPHER_CTX_new();
    KVASIR_CHECK(state_->seal != nullptr);
    KVASIR_CHECK(EVP_EncryptInit_ex2(state_->seal, Aes256Gcm(), state_->subkey.data(), nullptr,
                                     nullptr) == 1);
  }
  EVP_CIPHER_CTX* context = state_->seal;
  const auto iv = NonceBytes(nonce);
  int written = 0;
  KVASIR_CHECK(EVP_EncryptInit_ex2(context, nullptr, nullptr, iv.data(), nullptr) == 1);
  KVASIR_CHECK(
      EVP_EncryptUpdate(context, nullptr, &written, aad.data(), static_cast<int>(aad.size())) == 1);
  for (Bytes piece : pieces) {
    while (!piece.empty()) {
      const Bytes part = piece.first(std::min(piece.size(), kPieceBytesMax));
      KVASIR_CHECK(EVP_EncryptUpdate(context, out, &written, part.data(),
                                     static_cast<int>(part.size())) == 1);
      out += written;
      piece = piece.subspan(part.size());
    }
  }
  KVASIR_CHECK(EVP_EncryptFinal_ex(context, out, &written) == 1);
  KVASIR_CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTagBytes, out) == 1);
}

bool RecordCipher::Open(uint32_t nonce, Bytes aad, Bytes sealed, uint8_t* out) {
  KVASIR_CHECK(sealed.size() >= kTagBytes);
  if (state_->open == nullptr) {
    state_->open = EVP_CIPHER_CTX_new();
    KVASIR_CHECK(state_->open != nullptr);
    KVASIR_CHECK(EVP_DecryptInit_ex2(state_->open, Aes256Gcm(), state_->subkey.data(), nullptr,
                                     nullptr) == 1);
  }
  EVP_CIPHER_CTX* context = state_->open;
  const auto iv = NonceBytes(nonce);
  int written = 0;
  KVASIR_CHECK(EVP_DecryptInit_ex2(context, nullptr, nullptr, iv.data(), nullptr) == 1);
  KVASIR_CHECK(
      EVP_DecryptUpdate(context, nullptr, &written, aad.data(), static_cast<int>(aad.size())) == 1);
  Bytes content = sealed.first(sealed.size() - kTagBytes);
  const Bytes tag = sealed.last(kTagBytes);
  while (!content.empty()) {
    const Bytes part = content.first(std::min(content.size(), kPieceBytesMax));
    KVASIR_CHECK(
        EVP_DecryptUpdate(context, out, &written, part.data(), static_cast<int>(part.size())) == 1);
    out += written;
    content = content.subspan(part.size());
  }
  KVASIR_CHECK(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kTagBytes,
                                   const_cast<uint8_t*>(tag.data())) == 1);
  return EVP_DecryptFinal_ex(context, out, &written) == 1;
}

}  // namespace kvasir::kv
