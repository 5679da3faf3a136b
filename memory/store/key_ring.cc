#include "memory/store/key_ring.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/file.h"

namespace kvasir::store {
namespace {

// magic [4] ‖ version [4] ‖ data key [32] ‖ index key [32] ‖ first 8 bytes of SHA-256 of the rest
constexpr std::string_view kMagic = std::string_view("KVRK\x01\0\0\0", 8);
constexpr size_t kKeysBytes = 64;
constexpr size_t kSumBytes = 8;
constexpr size_t kFileBytes = kMagic.size() + kKeysBytes + kSumBytes;

std::string Sum(std::string_view body) {
  const base::Digest digest = base::Sha256(base::AsBytes(body));
  return std::string(digest.bytes.begin(), digest.bytes.begin() + kSumBytes);
}

class FileKeyRing final : public KeyRing {
 public:
  explicit FileKeyRing(std::string_view keys) {
    std::copy_n(keys.begin(), data_key_.size(), data_key_.begin());
    std::copy_n(keys.begin() + data_key_.size(), index_key_.size(), index_key_.begin());
  }
  ~FileKeyRing() override {
    OPENSSL_cleanse(data_key_.data(), data_key_.size());
    OPENSSL_cleanse(index_key_.data(), index_key_.size());
  }

  base::StatusOr<kv::DataKey> UserDataKey(const UserKey&) const override { return data_key_; }
  const IndexKey& index_key() const override { return index_key_; }
  std::string Fingerprint() const override {
    std::array<uint8_t, 32> mac;
    unsigned size = 0;
    KVASIR_CHECK(HMAC(EVP_sha256(), data_key_.data(), static_cast<int>(data_key_.size()),
                      index_key_.data(), index_key_.size(), mac.data(), &size) != nullptr);
    return base::ToHex(std::span(mac).first(8));
  }

 private:
  kv::DataKey data_key_;
  IndexKey index_key_;
};

// Whether only this user can read `path`.
base::Status CheckPrivate(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    const std::string error = std::strerror(errno);
    if (errno == ENOENT) return base::NotFound("{}: {}", path, error);
    return base::Unavailable("cannot stat {}: {}", path, error);
  }
  if ((info.st_mode & 077) != 0) {
    return base::PermissionDenied(
        "{} has mode {:o}, others could read it; at most 700 or 600 is "
        "accepted",
        path, info.st_mode & 0777);
  }
  if (info.st_uid != ::geteuid()) {
    return base::PermissionDenied("{} belongs to user {}, this process runs as {}", path,
                                  info.st_uid, ::geteuid());
  }
  return base::OkStatus();
}

base::Status Create(const FileKeyRingOptions& options, const std::string& path) {
  std::string body(kMagic);
  body.resize(kMagic.size() + kKeysBytes);
  options.entropy->Fill({reinterpret_cast<uint8_t*>(body.data()) + kMagic.size(), kKeysBytes});
  std::string file = body + Sum(body);
  const base::Status status = base::WriteFileDurably(path, file);
  OPENSSL_cleanse(body.data(), body.size());
  OPENSSL_cleanse(file.data(), file.size());
  return status;
}

}  // namespace

base::StatusOr<std::unique_ptr<KeyRing>> OpenFileKeyRing(const FileKeyRingOptions& options) {
  const std::string path = options.dir + "/data.key";
  base::Status status = CheckPrivate(path);
  if (absl::IsNotFound(status) && options.create) {
    KVASIR_RETURN_IF_ERROR(Create(options, path));
    status = CheckPrivate(path);
  }
  KVASIR_RETURN_IF_ERROR(status);
  KVASIR_RETURN_IF_ERROR(CheckPrivate(options.dir));
  KVASIR_ASSIGN_OR_RETURN(std::string file, base::ReadFile(path, 4096));
  if (file.size() != kFileBytes || !file.starts_with(kMagic)) {
    return base::DataLoss("{} is no key file of this format ({} bytes, {} expected)", path,
                          file.size(), kFileBytes);
  }
  const std::string_view body = std::string_view(file).substr(0, kFileBytes - kSumBytes);
  if (file.substr(body.size()) != Sum(body)) {
    return base::DataLoss("{} is damaged: its checksum does not match", path);
  }
  auto ring = std::make_unique<FileKeyRing>(body.substr(kMagic.size()));
  OPENSSL_cleanse(file.data(), file.size());
  return ring;
}

}  // namespace kvasir::store
