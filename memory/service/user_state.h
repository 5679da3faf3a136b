// UserState: what the memory tier keeps in RAM of one user: which sessions and memories exist, the
// lexical index, and the locks. The store is the truth; this is a view of it that is loaded when
// the user comes and changed right after each commit.
//
// Locks, in this order, none held while a state is built or loaded:
//   gate           shared by reads and by changes of one session; exclusive for deletion, erasure,
//                  loading and checks. Who holds it shared sees nothing half deleted.
//   LockOf(s)      changes of session s and of its memory
//   mutex          the members below it; never held over disk
// Internal.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "memory/index/lexical_index.h"
#include "memory/service/records.h"
#include "memory/service/totals.h"

namespace kvasir::service {

struct SessionEntry {
  std::string name;
  int64_t create_us = 0;
  std::optional<store::RecordId> memory;
  std::set<store::RecordId> mounts;  // memories in its timeline that are not deleted
  bool closed = false;
};
SessionEntry MakeEntry(const SessionRecord& record);

class UserState {
 public:
  // `server_totals` outlives it.
  UserState(UserRef user_ref, const store::UserKey& user_key, Totals* server_totals)
      : ref(std::move(user_ref)), key(user_key), totals_(*server_totals) {}

  const UserRef ref;
  const store::UserKey key;

  absl::Mutex gate;
  bool loaded ABSL_GUARDED_BY(gate) = false;
  bool erased ABSL_GUARDED_BY(gate) = false;  // void: the user, if any, has a new state
  std::atomic<bool> erasing = false;          // the fence of an erasure: nothing is served

  absl::Mutex& LockOf(const store::RecordId& session) {
    return session_locks_[session.bytes[0] % session_locks_.size()];
  }

  mutable absl::Mutex mutex;
  bool exists ABSL_GUARDED_BY(mutex) = false;
  UserRecord record ABSL_GUARDED_BY(mutex);
  std::map<store::RecordId, SessionEntry> sessions ABSL_GUARDED_BY(mutex);
  // Also of those that are just being created.
  std::map<std::string, store::RecordId> session_names ABSL_GUARDED_BY(mutex);
  std::map<store::RecordId, MemoryRecord> memories ABSL_GUARDED_BY(mutex);
  index::LexicalIndex index ABSL_GUARDED_BY(mutex);
  int64_t state_bytes ABSL_GUARDED_BY(mutex) = 0;  // of all segments
  // Turns that this process began and that did not end: session → number. Outlives reloads.
  std::map<store::RecordId, int64_t> running ABSL_GUARDED_BY(mutex);
  std::set<store::RecordId> unsaved_uses ABSL_GUARDED_BY(mutex);  // memories
  // Memories with a state of another model or build that could not be made anew: not tried again.
  std::set<store::RecordId> rebuilds_failed ABSL_GUARDED_BY(mutex);

  std::optional<store::RecordId> FindSession(const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex);
  std::optional<MemoryRecord> FindMemory(const store::RecordId& memory) const
      ABSL_LOCKS_EXCLUDED(mutex);
  // Whether a session but `except` has the memory in its timeline.
  bool IsMounted(const store::RecordId& memory) const ABSL_LOCKS_EXCLUDED(mutex);
  // Replaces the record, keeping its use counts. The memory counts as live from here on.
  void SetMemory(const MemoryRecord& memory) ABSL_LOCKS_EXCLUDED(mutex);
  // Tells the server's totals how many sessions and memories there are now, as the store has them.
  // The first call since the state was made says what the totals hold already.
  void Recount() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Recount(const UserCounts& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  Totals& totals_;
  std::optional<UserCounts> counted_ ABSL_GUARDED_BY(mutex);  // in the totals
  std::array<absl::Mutex, 16> session_locks_;
};

}  // namespace kvasir::service
