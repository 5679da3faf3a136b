#include "router/server/live_sessions.h"

#include <algorithm>
#include <chrono>

#include "engine/base/check.h"

namespace kvasir::server {
namespace {

constexpr size_t kDeletedMax = 65536;
constexpr size_t kMountablesMax = 65536;

// Whether `turn` is a repetition of the request that `other` serves.
base::StatusOr<bool> SameRequest(const LiveTurn& turn, const LiveTurn& other) {
  const std::string& id = turn.call.request_id;
  if (id.empty() || id != other.call.request_id) return false;
  if (turn.call.request_digest == other.call.request_digest) return true;
  return base::WithField(
      base::WithReason(base::AlreadyExists("request_id {} stands for another request", id),
                       "REQUEST_ID_REUSED"),
      "request_id");
}

}  // namespace

base::StatusOr<LiveSessions::Admitted> LiveSessions::Admit(const std::shared_ptr<LiveTurn>& turn) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(KeyOf(*turn));
  if (found != sessions_.end() && found->second.holder != nullptr) {
    Session& session = found->second;
    for (const auto& other : {session.holder, session.waiting}) {
      if (other == nullptr) continue;
      KVASIR_ASSIGN_OR_RETURN(const bool same, SameRequest(*turn, *other));
      if (same) return Admitted{Admission::kJoined, other};
    }
    if (!session.reply_ended || session.waiting != nullptr) return Admitted{};
  }
  if (turns_ >= options_.turns_max) {
    return base::WithReason(
        base::ResourceExhausted("{} turns run or wait, at most {} may", turns_, options_.turns_max),
        "QUEUE_FULL");
  }
  ++turns_;
  Session& session = sessions_[KeyOf(*turn)];
  if (session.holder != nullptr) {
    session.waiting = turn;
    return Admitted{Admission::kWaits, nullptr};
  }
  if (session.state.sequence != nullptr) idle_.erase(session.by_use);
  session.holder = turn;
  session.reply_ended = false;
  session.voided = false;
  return Admitted{Admission::kHolds, nullptr};
}

LiveSessions::Session& LiveSessions::Held(const LiveTurn& turn) {
  const auto found = sessions_.find(KeyOf(turn));
  KVASIR_CHECK(found != sessions_.end() && found->second.holder.get() == &turn);
  return found->second;
}

SessionState LiveSessions::Take(const LiveTurn& turn) {
  const std::lock_guard lock(mutex_);
  return std::exchange(Held(turn).state, {});
}

bool LiveSessions::Attend(const LiveTurn& turn, const std::vector<ReadyMount>& mounts) {
  const std::lock_guard lock(mutex_);
  Session& session = Held(turn);
  session.attended.clear();
  for (const ReadyMount& ready : mounts) {
    if (deleted_.contains(ready.memory)) return false;
    session.attended.push_back(ready.memory);
    auto& [user, digests] = mountables_[ready.memory];
    user = turn.call.user;
    digests.insert(ready.digest);
  }
  if (mountables_.size() > kMountablesMax && engine_ != nullptr) {
    std::erase_if(mountables_, [&](const auto& entry) {
      return std::ranges::none_of(entry.second.second, [&](const base::Digest& digest) {
        return engine_->FindMountable(digest) != nullptr;
      });
    });
  }
  return !session.voided;
}

void LiveSessions::EndReply(const LiveTurn& turn) {
  const std::lock_guard lock(mutex_);
  Held(turn).reply_ended = true;
}

std::shared_ptr<LiveTurn> LiveSessions::Release(const LiveTurn& turn, SessionState state) {
  std::vector<SessionState> dropped;  // destroyed without the lock
  std::shared_ptr<LiveTurn> next;
  std::vector<std::function<void()>> when_stored;
  {
    const std::lock_guard lock(mutex_);
    Session& session = Held(turn);
    if (--turns_ == 0) idle_changed_.notify_all();
    if (session.voided) {
      dropped.push_back(std::exchange(state, {}));
      session.attended.clear();
    }
    session.voided = false;
    session.reply_ended = false;
    session.state = std::move(state);
    // The sequence holds its segments as long as the engine lets it; this does not.
    for (ReadyMount& ready : session.state.mounts) ready.mount.segment = nullptr;
    when_stored.swap(session.when_stored);
    session.holder = std::exchange(session.waiting, nullptr);
    next = session.holder;
    if (next == nullptr && session.state.sequence == nullptr) {
      sessions_.erase(KeyOf(turn));
    } else if (next == nullptr) {
      session.by_use = idle_.insert(idle_.end(), KeyOf(turn));
      Trim(dropped);
    }
  }
  for (const auto& then : when_stored) then();
  return next;
}

bool LiveSessions::WhenStored(const service::UserRef& user, const std::string& session,
                              std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(Key{user, session});
    if (found != sessions_.end() && found->second.holder != nullptr) {
      if (!found->second.reply_ended || found->second.waiting != nullptr) return false;
      found->second.when_stored.push_back(std::move(then));
      return true;
    }
  }
  then();
  return true;
}

void LiveSessions::WhenUserStored(const service::UserRef& user, std::function<void()> then) {
  // Runs `then` when the last of those that hold it lets go.
  const std::shared_ptr<void> last(nullptr, [then = std::move(then)](void*) { then(); });
  const std::lock_guard lock(mutex_);
  for (auto it = sessions_.lower_bound(Key{user, ""});
       it != sessions_.end() && it->first.first == user; ++it) {
    Session& session = it->second;
    if (session.holder == nullptr || !session.reply_ended) continue;
    session.when_stored.push_back([last] {});
  }
}

void LiveSessions::Trim(std::vector<SessionState>& dropped) {
  while (static_cast<int64_t>(idle_.size()) > options_.sessions_max) {
    const auto oldest = sessions_.find(idle_.front());
    dropped.push_back(std::move(oldest->second.state));
    sessions_.erase(oldest);
    idle_.pop_front();
  }
}

std::shared_ptr<LiveTurn> LiveSessions::Running(const service::UserRef& user,
                                                const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(Key{user, session});
  if (found == sessions_.end() || found->second.reply_ended) return nullptr;
  return found->second.holder;
}

std::vector<std::shared_ptr<LiveTurn>> LiveSessions::AllTurns() const {
  std::vector<std::shared_ptr<LiveTurn>> turns;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, session] : sessions_) {
    if (session.holder != nullptr) turns.push_back(session.holder);
    if (session.waiting != nullptr) turns.push_back(session.waiting);
  }
  return turns;
}

int64_t LiveSessions::held() const {
  const std::lock_guard lock(mutex_);
  return turns_;
}

bool LiveSessions::WaitUntilIdle(int64_t us) {
  std::unique_lock lock(mutex_);
  return idle_changed_.wait_for(lock, std::chrono::microseconds(us), [&] { return turns_ == 0; });
}

void LiveSessions::SetEngine(runtime::Engine* engine) {
  const std::lock_guard lock(mutex_);
  engine_ = engine;
}

void LiveSessions::Void(Session& session, std::vector<SessionState>& dropped) {
  if (session.holder != nullptr) {
    session.voided = true;
    session.holder->Cancel();
    return;
  }
  idle_.erase(session.by_use);
  dropped.push_back(std::exchange(session.state, {}));
}

void LiveSessions::ForgetMountables(const store::RecordId& memory) {
  const auto found = mountables_.find(memory);
  if (found == mountables_.end()) return;
  if (engine_ != nullptr) {
    for (const base::Digest& digest : found->second.second) engine_->ForgetMountable(digest);
  }
  mountables_.erase(found);
}

void LiveSessions::OnMemoryDeleted(const service::UserRef& user, const store::RecordId& memory) {
  std::vector<SessionState> dropped;
  const std::lock_guard lock(mutex_);
  if (deleted_.insert(memory).second) {
    deleted_order_.push_back(memory);
    if (deleted_order_.size() > kDeletedMax) {
      deleted_.erase(deleted_order_.front());
      deleted_order_.pop_front();
    }
  }
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    auto& [key, session] = *it++;
    if (key.first != user || std::ranges::count(session.attended, memory) == 0) continue;
    const Key gone = key;
    Void(session, dropped);
    if (session.holder == nullptr) sessions_.erase(gone);
  }
  ForgetMountables(memory);
}

void LiveSessions::OnSessionInvalidated(const service::UserRef& user, const std::string& session,
                                        bool deleted) {
  std::vector<SessionState> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(Key{user, session});
  if (found == sessions_.end()) return;
  Void(found->second, dropped);
  if (deleted && found->second.waiting != nullptr) found->second.waiting->Cancel();
  if (found->second.holder == nullptr) sessions_.erase(found);
}

void LiveSessions::OnUserErased(const service::UserRef& user) {
  std::vector<SessionState> dropped;
  const std::lock_guard lock(mutex_);
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    auto& [key, session] = *it++;
    if (key.first != user) continue;
    const Key gone = key;
    if (session.waiting != nullptr) session.waiting->Cancel();
    Void(session, dropped);
    if (session.holder == nullptr) sessions_.erase(gone);
  }
  std::vector<store::RecordId> memories;
  for (const auto& [memory, entry] : mountables_) {
    if (entry.first == user) memories.push_back(memory);
  }
  for (const store::RecordId& memory : memories) ForgetMountables(memory);
}

}  // namespace kvasir::server
