#include "memory/service/consistency.h"

#include "memory/service/user_check.h"

namespace kvasir::service {
namespace {

base::StatusOr<std::vector<UserRef>> AllUsers(const store::Store& store) {
  std::vector<UserRef> users;
  std::optional<store::RecordKey> after;
  while (true) {
    KVASIR_ASSIGN_OR_RETURN(const store::Page page,
                            store.ScanAllUsers(store::Kind::kUser, after, 1000));
    for (const store::Record& record : page.records) {
      KVASIR_ASSIGN_OR_RETURN(const UserRecord user, Decode<UserRecord>(record.value));
      users.push_back(user.ref);
    }
    if (!page.more) return users;
    after = page.records.back().key;
  }
}

}  // namespace

base::StatusOr<ConsistencyReport> CheckConsistency(Core& core, Repair repair) {
  ConsistencyReport report;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<UserRef> users, AllUsers(*core.store));
  for (const UserRef& user : users) {
    const auto exclusive = core.users.Exclusive(user);
    if (base::Reason(exclusive.status()) == "ERASURE_IN_PROGRESS") continue;
    KVASIR_RETURN_IF_ERROR(exclusive.status());
    KVASIR_RETURN_IF_ERROR(UserCheck(core, **exclusive, repair, &report).Run());
  }
  if (repair == Repair::kNo) return report;
  KVASIR_ASSIGN_OR_RETURN(const store::SweepResult swept, core.store->SweepOrphans());
  if (swept.orphans_removed > 0) {
    report.findings.push_back(
        {.kind = "ORPHAN_CHUNK",
         .detail = fmt::format("chunks of {} segments without a row", swept.orphans_removed),
         .mended = true});
  }
  return report;
}

}  // namespace kvasir::service
