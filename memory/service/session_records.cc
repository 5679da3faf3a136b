// Sessions: making, reading and listing them.
#include <algorithm>

#include "memory/service/record_access.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {
namespace {

constexpr size_t kNameBytesMax = 128;

base::Status CheckWanted(const TierOptions& options, const SessionRecord& wanted) {
  if (wanted.name.size() > kNameBytesMax) {
    return base::InvalidArgument("session name of {} bytes, at most {}", wanted.name.size(),
                                 kNameBytesMax);
  }
  if (wanted.system_prompt.size() > options.message_bytes_max) {
    return LimitReached("bytes of system prompt", std::ssize(wanted.system_prompt),
                        static_cast<int64_t>(options.message_bytes_max));
  }
  return base::OkStatus();
}

}  // namespace

base::Status CheckSessionModel(const SessionRecord& session, const kv::ModelId& served) {
  const std::string hex = served.digest.Hex();
  if (session.model_id_hex.empty() || session.model_id_hex == hex) return base::OkStatus();
  return base::WithReason(
      base::FailedPrecondition("the session was begun with model {}, the server runs {}",
                               session.model_id_hex, hex),
      "MODEL_MISMATCH");
}

base::StatusOr<OpenSession> FindSession(Core& core, const UserRef& user,
                                        const std::string& session) {
  KVASIR_ASSIGN_OR_RETURN(SharedUser shared, core.users.Shared(user));
  const std::optional<store::RecordId> id = shared->FindSession(session);
  if (!id) return SessionNotFound();
  return OpenSession{std::move(shared), *id};
}

base::StatusOr<SessionRecord> SessionsImpl::Create(const UserRef& user,
                                                   const SessionRecord& wanted) {
  KVASIR_RETURN_IF_ERROR(CheckWanted(core_.options, wanted));
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  SessionRecord session;
  session.id = store::NewRecordId(*core_.entropy);
  session.name = wanted.name.empty() ? session.id.Hex() : wanted.name;
  session.display_name = wanted.display_name;
  session.system_prompt = wanted.system_prompt;
  session.mode = wanted.mode;
  session.incognito = wanted.mode == MemoryMode::kIncognito;
  session.tainted = wanted.mode != MemoryMode::kReadWrite || !wanted.system_prompt.empty();
  session.create_us = session.update_us = core_.now_us();
  store::Batch batch;
  {
    absl::MutexLock lock(&shared->mutex);
    if (shared->session_names.contains(session.name)) {
      return base::AlreadyExists("the user has a session of this name");
    }
    const int64_t wanted_sessions = std::ssize(shared->session_names) + 1;
    if (wanted_sessions > core_.options.sessions_per_user_max) {
      return LimitReached("sessions", wanted_sessions, core_.options.sessions_per_user_max);
    }
    // The name is taken from here on, and the session visible once it is durable.
    shared->session_names[session.name] = session.id;
    if (!shared->exists) {
      shared->record = UserRecord{.ref = user, .create_us = session.create_us, .epoch = 0};
      batch.Put(UserRowKey(shared->key), Encode(shared->record));
    }
  }
  batch.Put(SessionKey(shared->key, session.id), Encode(session));
  const base::Status status = core_.store->Commit(batch);
  absl::MutexLock lock(&shared->mutex);
  if (!status.ok()) {
    shared->session_names.erase(session.name);
    return status;
  }
  shared->exists = true;
  shared->sessions[session.id] = MakeEntry(session);
  shared->Recount();
  return session;
}

std::string SessionsImpl::HandleOf(const UserRef& user, const store::RecordId& session) const {
  return base::ToHex(core_.users.KeyOf(user).bytes) + session.Hex();
}

base::StatusOr<HandledSession> SessionsImpl::FindHandle(const std::string& tenant,
                                                        const std::string& handle) {
  constexpr size_t kHalf = 2 * sizeof(store::RecordId::bytes);
  const auto key = ParseRecordId(std::string_view(handle).substr(0, kHalf));
  const auto id = ParseRecordId(std::string_view(handle).substr(std::min(kHalf, handle.size())));
  if (!key || !id) return SessionNotFound();
  const auto user = Read<UserRecord>(*core_.store, UserRowKey(store::UserKey{key->bytes}));
  if (user.status().code() == absl::StatusCode::kNotFound) return SessionNotFound();
  KVASIR_RETURN_IF_ERROR(user.status());
  if (user->ref.tenant != tenant) return SessionNotFound();
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user->ref));
  {
    absl::MutexLock lock(&shared->mutex);
    if (!shared->sessions.contains(*id)) return SessionNotFound();
  }
  KVASIR_ASSIGN_OR_RETURN(const SessionRecord session,
                          Read<SessionRecord>(*core_.store, SessionKey(shared->key, *id)));
  return HandledSession{user->ref, session};
}

base::StatusOr<SessionRecord> SessionsImpl::Get(const UserRef& user, const std::string& session) {
  KVASIR_ASSIGN_OR_RETURN(const OpenSession open, FindSession(core_, user, session));
  return Read<SessionRecord>(*core_.store, SessionKey(open.user->key, open.id));
}

base::StatusOr<Listed<SessionRecord>> SessionsImpl::List(const UserRef& user,
                                                         const ListPage& page) {
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  std::vector<ListPosition> positions;
  {
    absl::MutexLock lock(&shared->mutex);
    for (const auto& [id, entry] : shared->sessions) positions.push_back({entry.create_us, id});
  }
  KVASIR_RETURN_IF_ERROR(CutPage(page, positions));
  Listed<SessionRecord> listed;
  for (const ListPosition& position : positions) {
    if (std::ssize(listed.items) == page.size) {
      listed.next = positions[static_cast<size_t>(page.size) - 1].Text();
      break;
    }
    KVASIR_ASSIGN_OR_RETURN(
        listed.items.emplace_back(),
        Read<SessionRecord>(*core_.store, SessionKey(shared->key, position.id)));
  }
  return listed;
}

}  // namespace kvasir::service
