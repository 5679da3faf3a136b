// MountCache: mountable segments by the name of their content, until their pages are needed.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/digest.h"
#include "engine/runtime/sequence.h"

namespace kvasir::runtime {

class MountCache {
 public:
  std::shared_ptr<const MountableSegment> Find(const base::Digest& key, uint64_t use);
  void Insert(const base::Digest& key, std::shared_ptr<const MountableSegment> segment,
              uint64_t use);
  void Erase(const base::Digest& key);
  void Clear();
  // When the least recently used segment that nobody else holds was used, if there is one.
  std::optional<uint64_t> OldestUnreferenced() const;
  // Drops that segment; says whether there was one.
  bool EvictOldestUnreferenced();
  // Bytes of the pages of all cached segments.
  size_t bytes() const;

 private:
  struct Entry {
    std::shared_ptr<const MountableSegment> segment;
    uint64_t last_use = 0;
  };
  using Entries = std::map<base::Digest, Entry>;
  Entries::const_iterator Oldest() const;  // REQUIRES: mutex_ held

  mutable std::mutex mutex_;
  Entries entries_;
};

}  // namespace kvasir::runtime
