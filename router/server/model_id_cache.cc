#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "engine/base/file.h"
#include "router/server/model_host.h"

namespace kvasir::server {
namespace {

using nlohmann::json;

constexpr size_t kCacheBytesMax = 16 << 10;

// What tells that a file is the one seen before. The version changes with the definition of
// model_id.
json Fingerprint(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return nullptr;
  return {{"version", 1},
          {"path", path},
          {"bytes", info.st_size},
          {"inode", info.st_ino},
          {"changed_ns", info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec}};
}

std::optional<base::Digest> FromHex(const std::string& hex) {
  base::Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  const auto nibble = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

std::optional<base::Digest> Cached(const std::string& id_cache, const json& fingerprint) {
  const auto text = base::ReadFile(id_cache, kCacheBytesMax);
  if (!text.ok()) return std::nullopt;
  const json cached = json::parse(*text, nullptr, false);
  if (!cached.is_object() || !cached.contains("file") || cached["file"] != fingerprint) {
    return std::nullopt;
  }
  const auto id = cached.find("model_id");
  if (id == cached.end() || !id->is_string()) return std::nullopt;
  return FromHex(id->get<std::string>());
}

}  // namespace

kv::ModelId CachedModelId(const std::string& model_path, const std::string& id_cache,
                          const std::function<kv::ModelId()>& compute) {
  const json fingerprint = Fingerprint(model_path);
  if (!fingerprint.is_null()) {
    if (const auto digest = Cached(id_cache, fingerprint)) return {*digest};
  }
  const kv::ModelId id = compute();
  if (!fingerprint.is_null()) {
    const json cached = {{"file", fingerprint}, {"model_id", id.digest.Hex()}};
    // Without the cache the next start is slower, nothing else.
    base::WriteFileDurably(id_cache, cached.dump() + "\n").IgnoreError();
  }
  return id;
}

}  // namespace kvasir::server
