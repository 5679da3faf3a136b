// KeyRing: from where the store has its secrets.
//
// Threads: all methods may be called concurrently. Implementations: the file key ring below (one
// data key for a data directory).
#pragma once

#include <memory>
#include <string>

#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "engine/kv/codec.h"
#include "memory/store/keys.h"

namespace kvasir::store {

class KeyRing {
 public:
  virtual ~KeyRing() = default;

  // The key under which `user`'s values and segments are sealed.
  // Errors: NotFound (destroyed: nothing sealed under it can be read again).
  virtual base::StatusOr<kv::DataKey> UserDataKey(const UserKey& user) const = 0;
  virtual const IndexKey& index_key() const = 0;
  // 16 hexadecimal digits by which a store recognises its keys; tells nothing about them.
  virtual std::string Fingerprint() const = 0;
};

// The key ring of `dir` (DIR/keys): data.key, mode 0600 in a directory of mode 0700, read and
// checked (owner, mode, length, checksum). With `create`, an absent file is made from `entropy`,
// durably. Errors: NotFound (no file), PermissionDenied (mode or owner would let others read it),
// DataLoss (length or checksum wrong), Unavailable (disk).
struct FileKeyRingOptions {
  std::string dir;
  base::Entropy* entropy = nullptr;  // borrowed
  bool create = false;
};
base::StatusOr<std::unique_ptr<KeyRing>> OpenFileKeyRing(const FileKeyRingOptions& options);

}  // namespace kvasir::store
