#include "memory/store/value_seal.h"

namespace kvasir::store {
namespace {

constexpr uint8_t kValueVersion = 1;
constexpr std::string_view kInfo = "kvasir record 1";

}  // namespace

std::string SealValue(const kv::DataKey& data_key, std::string_view key, std::string_view value,
                      base::Entropy& entropy) {
  std::string sealed(value.size() + kValueOverheadBytes, '\0');
  auto* bytes = reinterpret_cast<uint8_t*>(sealed.data());
  bytes[0] = kValueVersion;
  const std::span<uint8_t> salt(bytes + 1, kv::kSaltBytes);
  entropy.Fill(salt);
  kv::RecordCipher cipher(data_key, salt, base::AsBytes(kInfo));
  const kv::RecordCipher::Bytes piece = base::AsBytes(value);
  cipher.Seal(0, base::AsBytes(key), {&piece, 1}, bytes + 1 + kv::kSaltBytes);
  return sealed;
}

base::StatusOr<std::string> OpenValue(const kv::DataKey& data_key, std::string_view key,
                                      std::string_view sealed) {
  const std::span<const uint8_t> bytes = base::AsBytes(sealed);
  if (!bytes.empty() && bytes[0] > kValueVersion) {
    return base::FailedPrecondition("record {}: value of version {}, this program reads up to {}",
                                    base::ToHex(base::AsBytes(key)), bytes[0], kValueVersion);
  }
  if (bytes.size() >= kValueOverheadBytes && bytes[0] == kValueVersion) {
    kv::RecordCipher cipher(data_key, bytes.subspan(1, kv::kSaltBytes), base::AsBytes(kInfo));
    std::string value(bytes.size() - kValueOverheadBytes, '\0');
    if (cipher.Open(0, base::AsBytes(key), bytes.subspan(1 + kv::kSaltBytes),
                    reinterpret_cast<uint8_t*>(value.data()))) {
      return value;
    }
  }
  return base::DataLoss("record {}: value of {} bytes does not open",
                        base::ToHex(base::AsBytes(key)), bytes.size());
}

}  // namespace kvasir::store
