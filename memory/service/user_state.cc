#include "memory/service/user_state.h"

#include <algorithm>

namespace kvasir::service {

SessionEntry MakeEntry(const SessionRecord& record) {
  SessionEntry entry{.name = record.name,
                     .create_us = record.create_us,
                     .memory = record.memory,
                     .mounts = {},
                     .closed = record.state == SessionRecord::State::kClosed};
  for (const MountEntry& mount : record.mounts) {
    if (!mount.deleted) entry.mounts.insert(mount.memory);
  }
  return entry;
}

std::optional<store::RecordId> UserState::FindSession(const std::string& name) const {
  absl::MutexLock lock(&mutex);
  const auto found = session_names.find(name);
  if (found == session_names.end() || !sessions.contains(found->second)) return std::nullopt;
  return found->second;
}

std::optional<MemoryRecord> UserState::FindMemory(const store::RecordId& memory) const {
  absl::MutexLock lock(&mutex);
  const auto found = memories.find(memory);
  if (found == memories.end()) return std::nullopt;
  return found->second;
}

bool UserState::IsMounted(const store::RecordId& memory) const {
  absl::MutexLock lock(&mutex);
  return std::ranges::any_of(
      sessions, [&](const auto& session) { return session.second.mounts.contains(memory); });
}

void UserState::SetMemory(const MemoryRecord& memory) {
  absl::MutexLock lock(&mutex);
  MemoryRecord& mine = memories[memory.id];
  const int64_t use_count = std::max(mine.use_count, memory.use_count);
  const int64_t last_use_us = std::max(mine.last_use_us, memory.last_use_us);
  mine = memory;
  mine.use_count = use_count;
  mine.last_use_us = last_use_us;
  Recount();
}

void UserState::Recount() {
  Recount({.users = exists ? 1 : 0,
           .sessions = std::ssize(sessions),
           .memories = std::ssize(memories)});
}

void UserState::Recount(const UserCounts& now) {
  if (counted_) totals_.Move(*counted_, now);
  counted_ = now;
}

}  // namespace kvasir::service
