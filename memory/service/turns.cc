// Turns: reading them, and the two commits that begin and end one.
#include <charconv>

#include "memory/service/learning.h"
#include "memory/service/record_access.h"
#include "memory/service/session_changes.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
namespace {

base::Status TurnNotFound(int64_t number) { return base::NotFound("no turn {}", number); }

base::StatusOr<int64_t> ParseNumber(const std::string& text) {
  int64_t number = 0;
  if (text.empty()) return number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return base::InvalidArgument("list position of {} characters is malformed", text.size());
  }
  return number;
}

bool IsRunning(const UserState& user, const store::RecordId& session) {
  absl::MutexLock lock(&user.mutex);
  return user.running.contains(session);
}

}  // namespace

base::StatusOr<TurnRecord> SessionsImpl::GetTurn(const UserRef& user, const std::string& session,
                                                 int64_t number) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, session));
  if (number < 1) return TurnNotFound(number);
  auto turn = Read<TurnRecord>(*core_.store, TurnKey(open.user->key, open.id, number));
  if (turn.status().code() == absl::StatusCode::kNotFound) return TurnNotFound(number);
  return turn;
}

base::StatusOr<Listed<TurnRecord>> SessionsImpl::ListTurns(const UserRef& user,
                                                           const std::string& session,
                                                           const ListPage& page) {
  if (page.size < 1 || page.size > 1000) {
    return base::InvalidArgument("page of {} entries, the range is 1 to 1000", page.size);
  }
  KVASIR_ASSIGN_OR_RETURN(const int64_t after, ParseNumber(page.after));
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, session));
  Listed<TurnRecord> listed;
  if (after > core_.options.session_turns_max) return listed;
  KVASIR_ASSIGN_OR_RETURN(listed.items, ReadTurns(*core_.store, open.user->key, open.id, after + 1,
                                                  after + 1 + page.size));
  if (std::ssize(listed.items) > page.size) {
    listed.items.pop_back();
    listed.next = std::to_string(listed.items.back().number);
  }
  return listed;
}

base::StatusOr<std::vector<TurnRecord>> SessionsImpl::History(const UserRef& user,
                                                              const std::string& session) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, session));
  return ReadTurns(*core_.store, open.user->key, open.id, 1, core_.options.session_turns_max);
}

base::StatusOr<std::optional<TurnRecord>> SessionsImpl::FindRequest(const UserRef& user,
                                                                    const std::string& session,
                                                                    const std::string& request_id) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, session));
  const int64_t oldest_us =
      core_.now_us() - core_.options.request_id_hours * int64_t{3600} * 1000000;
  store::ScanOptions options;
  options.user = open.user->key;
  options.kind = store::Kind::kTurn;
  options.id = open.id;
  options.records_max = 16;
  options.order = store::ScanOptions::Order::kDescending;
  while (!request_id.empty()) {
    KVASIR_ASSIGN_OR_RETURN(const store::Page page, core_.store->Scan(options));
    for (const store::Record& record : page.records) {
      KVASIR_ASSIGN_OR_RETURN(TurnRecord turn, Decode<TurnRecord>(record.value));
      if (turn.create_us < oldest_us) return std::nullopt;
      if (turn.request_id == request_id) return std::optional(std::move(turn));
    }
    if (!page.more) break;
    options.after = page.records.back().key;
  }
  return std::nullopt;
}

base::Status SessionsImpl::CheckStart(const UserState& user, const SessionRecord& session,
                                      const TurnStart& start) const {
  if (session.state == SessionRecord::State::kClosed) {
    return base::WithReason(base::FailedPrecondition("the session is closed"), "SESSION_CLOSED");
  }
  KVASIR_RETURN_IF_ERROR(CheckSessionModel(session, core_.builder->model_id()));
  if (IsRunning(user, session.id)) {
    return base::WithReason(
        base::Aborted("turn {} of the session is running", session.running_turn), "SESSION_BUSY");
  }
  if (session.next_turn > core_.options.session_turns_max) {
    return LimitReached("turns in this session", session.next_turn,
                        core_.options.session_turns_max);
  }
  if (start.turn.user_text.size() > core_.options.message_bytes_max) {
    return LimitReached("bytes of message", std::ssize(start.turn.user_text),
                        static_cast<int64_t>(core_.options.message_bytes_max));
  }
  if (session.offset < 0 && (start.offset < 0 || start.date.empty())) {
    return base::InvalidArgument("a first turn needs offset and date; offset is {}", start.offset);
  }
  for (const MountEntry& mount : start.mounts_added) {
    if (!user.FindMemory(mount.memory)) {
      return base::WithReason(base::Aborted("a chosen memory was deleted meanwhile"), "DELETED");
    }
  }
  return base::OkStatus();
}

base::StatusOr<TurnRecord> SessionsImpl::BeginTurn(const UserRef& user, const std::string& name,
                                                   TurnStart start) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, name));
  UserState& state = *open.user;
  absl::MutexLock session_lock(&state.LockOf(open.id));
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(state.key, open.id)));
  KVASIR_RETURN_IF_ERROR(CheckStart(state, session, start));
  store::Batch batch;
  if (session.running_turn != 0) {  // its end failed to be written
    SessionVoiding voiding(*core_.store, state);
    KVASIR_RETURN_IF_ERROR(voiding.FailRunning(session, "NOT_FINISHED", core_.now_us(), batch));
  }
  TurnRecord turn = std::move(start.turn);
  turn.session = session.id;
  turn.number = session.next_turn;
  turn.state = TurnRecord::State::kRunning;
  turn.create_us = core_.now_us();
  if (session.offset < 0) {
    session.offset = start.offset;
    session.date = start.date;
  }
  session.model_id_hex = core_.builder->model_id().digest.Hex();
  for (MountEntry& mount : start.mounts_added) {
    mount.turn = turn.number;
    session.mounts.push_back(std::move(mount));
  }
  session.incognito |= turn.mode == MemoryMode::kIncognito;
  session.tainted |= turn.mode != MemoryMode::kReadWrite || !session.mounts.empty() ||
                     session.offset != core_.builder->base_tokens();
  session.running_turn = turn.number;
  session.next_turn = turn.number + 1;
  session.update_us = turn.create_us;
  batch.Put(TurnKey(state.key, session.id, turn.number), Encode(turn));
  batch.Put(SessionKey(state.key, session.id), Encode(session));
  KVASIR_RETURN_IF_ERROR(core_.store->Commit(batch));
  absl::MutexLock lock(&state.mutex);
  state.running[session.id] = turn.number;
  state.sessions[session.id] = MakeEntry(session);
  return turn;
}

base::Status SessionsImpl::FinishTurn(const UserRef& user, const TurnRecord& turn) {
  auto shared = core_.users.Shared(user);
  if (base::Reason(shared.status()) == "ERASURE_IN_PROGRESS") {
    return base::Aborted("the user is being erased");
  }
  KVASIR_RETURN_IF_ERROR(shared.status());
  UserState& state = **shared;
  {
    absl::MutexLock lock(&state.mutex);
    if (!state.sessions.contains(turn.session)) return SessionNotFound();
  }
  absl::MutexLock session_lock(&state.LockOf(turn.session));
  const store::RecordKey key = TurnKey(state.key, turn.session, turn.number);
  KVASIR_ASSIGN_OR_RETURN(TurnRecord stored, Read<TurnRecord>(*core_.store, key));
  KVASIR_ASSIGN_OR_RETURN(SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(state.key, turn.session)));
  if (stored.state != TurnRecord::State::kRunning) {
    return base::Aborted("turn {} is not running any more: something it used was deleted",
                         turn.number);
  }
  const bool failed = turn.state == TurnRecord::State::kFailed;
  stored.state = failed ? TurnRecord::State::kFailed : TurnRecord::State::kDone;
  stored.reply_text = turn.reply_text;
  stored.reply_ids = turn.reply_ids;
  stored.reply_logprobs = turn.reply_logprobs;
  stored.finish_reason = turn.finish_reason;
  stored.usage = turn.usage;
  stored.finish_us = core_.now_us();
  session.running_turn = 0;
  session.update_us = stored.finish_us;
  store::Batch batch;
  batch.Put(key, Encode(stored));
  batch.Put(SessionKey(state.key, session.id), Encode(session));
  // What the next SaveState does not take over, this job builds once the session is idle.
  std::optional<JobRecord> job;
  if (Learnable(session, stored) || session.incognito) {
    job = JobRecord{.id = session.id,
                    .type = JobRecord::Type::kBuildMemory,
                    .user = user,
                    .due_us = stored.finish_us + core_.options.session_idle_close_s * 1000000,
                    .create_us = stored.finish_us};
    if (!core_.CheckRoomForJob(state.key, job->id).ok()) job.reset();  // Close makes up for it
  }
  if (job) batch.Put(JobKey(state.key, job->id), Encode(*job));
  const base::Status status = core_.store->Commit(batch);
  if (status.ok() && job) core_.jobs.Set(state.key, *job);
  // After a failure, too: FinishTurn may be called again, and the next BeginTurn fails this turn.
  absl::MutexLock lock(&state.mutex);
  state.running.erase(session.id);
  return status;
}

}  // namespace kvasir::service
