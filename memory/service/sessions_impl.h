// SessionsImpl: Sessions over the store. Its methods stand in session_records.cc, turns.cc,
// checkpoints.cc, session_close.cc and deletion.cc. Internal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/sessions.h"

namespace kvasir::service {

class SessionsImpl final : public Sessions {
 public:
  explicit SessionsImpl(Core* core) : core_(*core) {}

  base::StatusOr<SessionRecord> Create(const UserRef& user, const SessionRecord& wanted) override;
  std::string HandleOf(const UserRef& user, const store::RecordId& session) const override;
  base::StatusOr<HandledSession> FindHandle(const std::string& tenant,
                                            const std::string& handle) override;
  base::StatusOr<SessionRecord> Get(const UserRef& user, const std::string& session) override;
  base::StatusOr<Listed<SessionRecord>> List(const UserRef& user, const ListPage& page) override;
  base::StatusOr<TurnRecord> GetTurn(const UserRef& user, const std::string& session,
                                     int64_t number) override;
  base::StatusOr<Listed<TurnRecord>> ListTurns(const UserRef& user, const std::string& session,
                                               const ListPage& page) override;
  base::StatusOr<std::vector<TurnRecord>> History(const UserRef& user,
                                                  const std::string& session) override;
  base::StatusOr<std::optional<TurnRecord>> FindRequest(const UserRef& user,
                                                        const std::string& session,
                                                        const std::string& request_id) override;
  base::StatusOr<TurnRecord> BeginTurn(const UserRef& user, const std::string& session,
                                       TurnStart start) override;
  base::Status FinishTurn(const UserRef& user, const TurnRecord& turn) override;
  base::Status SaveState(const UserRef& user, const std::string& session, int64_t turn,
                         const std::vector<std::shared_ptr<const kv::KvSegment>>& parts,
                         bool replaces_last) override;
  base::StatusOr<std::vector<std::shared_ptr<const kv::KvSegment>>> LoadState(
      const UserRef& user, const std::string& session) override;
  base::StatusOr<SessionRecord> Close(const UserRef& user, const std::string& session) override;
  base::Status Delete(const UserRef& user, const std::string& session) override;

 private:
  base::Status CheckStart(const UserState& user, const SessionRecord& session,
                          const TurnStart& start) const;

  Core& core_;
};

// A session that an operation works on, with its user's gate held shared.
struct OpenSession {
  SharedUser user;
  store::RecordId id;
};
// Errors: NotFound, and those of Users::Shared.
base::StatusOr<OpenSession> FindSession(Core& core, const UserRef& user,
                                        const std::string& session);

// Position in a list that is ordered newest first: creation time and id.
struct ListPosition {
  int64_t create_us = 0;
  store::RecordId id;
  std::string Text() const;
  // Errors: InvalidArgument.
  static base::StatusOr<ListPosition> Parse(const std::string& text);
  auto operator<=>(const ListPosition&) const = default;
};
// Sorts newest first, drops what is not past `page.after`, and keeps one entry more than a page
// holds, so that the caller sees whether there are more.
// Errors: InvalidArgument (size outside 1 to 1000, malformed position).
base::Status CutPage(const ListPage& page, std::vector<ListPosition>& positions);

}  // namespace kvasir::service
