// DataDirectory: who may use a data directory, and whether it is one.
//
//   DIR/FORMAT         "kvasir-store 1\nkeys 0123456789abcdef\n": format and key fingerprint
//   DIR/LOCK           locked (flock) while a process uses DIR; says which
//   DIR/keys/data.key  secrets (key_ring.h)
//   DIR/meta, DIR/states   the two RocksDB instances
// FORMAT is written last when a store is made: where it stands, both instances and the keys must,
// too. Internal.
#pragma once

#include <memory>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "memory/store/key_ring.h"

namespace kvasir::store {

class DataDirectory {
 public:
  // Checks format, takes the lock, opens the keys. Errors: as Store::Open.
  static base::StatusOr<std::unique_ptr<DataDirectory>> Open(const std::string& dir,
                                                             const base::Clock& clock,
                                                             base::Entropy& entropy);
  // True until the store was made whole: the instances may be created.
  bool fresh() const { return fresh_; }
  // Writes FORMAT when fresh. Errors: Unavailable.
  base::Status MarkComplete();
  // Gives the lock up.
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  std::string meta_path() const { return dir_ + "/meta"; }
  std::string states_path() const { return dir_ + "/states"; }
  const KeyRing& key_ring() const { return *key_ring_; }

 private:
  explicit DataDirectory(std::string dir) : dir_(std::move(dir)) {}
  base::Status Lock(const base::Clock& clock);

  std::string dir_;
  int lock_fd_ = -1;
  bool fresh_ = false;
  std::unique_ptr<KeyRing> key_ring_;
};

}  // namespace kvasir::store
