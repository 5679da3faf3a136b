// StateCache: decoded states in RAM, by bytes, least recently used first out. A user whose states
// take less than the reserve loses none to another user while others have more. Threads: all
// methods may be called concurrently. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/digest.h"
#include "engine/kv/segment.h"
#include "memory/store/keys.h"

namespace kvasir::service {

class StateCache {
 public:
  StateCache(size_t bytes_max, size_t user_reserve_bytes)
      : bytes_max_(bytes_max), reserve_(user_reserve_bytes) {}

  struct Key {
    store::UserKey user;
    base::Digest state;
    auto operator<=>(const Key&) const = default;
  };

  // The state, or null.
  std::shared_ptr<const kv::KvSegment> Get(const Key& key);
  // Keeps a state of `memory` unless it alone exceeds the bound.
  void Put(const Key& key, const store::RecordId& memory,
           std::shared_ptr<const kv::KvSegment> state);
  void PurgeMemory(const store::UserKey& user, const store::RecordId& memory);
  void PurgeUser(const store::UserKey& user);
  size_t bytes() const;
  // States kept of the user.
  size_t count(const store::UserKey& user) const;

 private:
  struct Entry {
    Key key;
    store::RecordId memory;
    std::shared_ptr<const kv::KvSegment> state;
  };
  using Entries = std::list<Entry>;  // most recent first

  void Remove(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(const store::UserKey& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t bytes_max_, reserve_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Entries::iterator> index_ ABSL_GUARDED_BY(mutex_);
  std::map<store::UserKey, size_t> user_bytes_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvasir::service
