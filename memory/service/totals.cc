#include "memory/service/totals.h"

namespace kvasir::service {

base::Status Totals::Count(const store::Store& store) {
  using store::Kind;
  KVASIR_ASSIGN_OR_RETURN(users_, store.CountRecords(Kind::kUser, std::nullopt));
  KVASIR_ASSIGN_OR_RETURN(sessions_, store.CountRecords(Kind::kSession, std::nullopt));
  KVASIR_ASSIGN_OR_RETURN(memories_, store.CountRecords(Kind::kMemory, std::nullopt));
  return base::OkStatus();
}

void Totals::Move(const UserCounts& before, const UserCounts& now) {
  users_ += now.users - before.users;
  sessions_ += now.sessions - before.sessions;
  memories_ += now.memories - before.memories;
}

UserCounts Totals::Get() const {
  return {.users = users_, .sessions = sessions_, .memories = memories_};
}

}  // namespace kvasir::service
