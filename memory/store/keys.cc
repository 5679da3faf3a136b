#include "memory/store/keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "engine/base/check.h"

namespace kvasir::store {
namespace {

// len [8, little-endian] ‖ text: two texts never run together.
void AppendText(std::string& out, std::string_view text) {
  const uint64_t size = text.size();
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(size >> (8 * i)));
  out.append(text);
}

std::array<uint8_t, 16> KeyedHash(const IndexKey& key, const std::string& message) {
  std::array<uint8_t, 32> mac;
  unsigned size = 0;
  KVASIR_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                    base::AsBytes(message).data(), message.size(), mac.data(), &size) != nullptr);
  KVASIR_CHECK(size == mac.size());
  std::array<uint8_t, 16> first;
  std::copy_n(mac.begin(), first.size(), first.begin());
  return first;
}

void AppendBytes(std::string& out, std::span<const uint8_t> bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

std::string EncodeKey(const RecordKey& key) {
  std::string out;
  out.reserve(kRecordKeyBytes);
  AppendBytes(out, key.user.bytes);
  out.push_back(static_cast<char>(key.kind));
  AppendBytes(out, key.id.bytes);
  for (int shift = 56; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(key.sequence >> shift));
  }
  return out;
}

std::optional<RecordKey> DecodeKey(std::string_view bytes) {
  if (bytes.size() != kRecordKeyBytes) return std::nullopt;
  const std::span<const uint8_t> in = base::AsBytes(bytes);
  if (in[16] == 0 || in[16] > kKindMax) return std::nullopt;
  RecordKey key;
  std::copy_n(in.begin(), 16, key.user.bytes.begin());
  key.kind = static_cast<Kind>(in[16]);
  std::copy_n(in.begin() + 17, 16, key.id.bytes.begin());
  for (int i = 33; i < 41; ++i) key.sequence = key.sequence << 8 | in[i];
  return key;
}

UserKey MakeUserKey(const IndexKey& key, std::string_view tenant, std::string_view user) {
  std::string message = "user";
  AppendText(message, tenant);
  AppendText(message, user);
  return {KeyedHash(key, message)};
}

RecordId MakeNameId(const IndexKey& key, const UserKey& user, Kind kind, std::string_view name) {
  std::string message = "name";
  AppendBytes(message, user.bytes);
  message.push_back(static_cast<char>(kind));
  AppendText(message, name);
  return {KeyedHash(key, message)};
}

RecordId NewRecordId(base::Entropy& entropy) {
  RecordId id;
  entropy.Fill(id.bytes);
  return id;
}

}  // namespace kvasir::store
