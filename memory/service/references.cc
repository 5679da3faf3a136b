#include "memory/service/references.h"

#include "memory/service/job_worker.h"

namespace kvasir::service {

base::StatusOr<SegmentReferences> ReadReferences(const store::Store& store,
                                                 const store::UserKey& user) {
  SegmentReferences references;
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      store, user, store::Kind::kMemory, std::nullopt, [&](const store::Record& record) {
        KVASIR_ASSIGN_OR_RETURN(const MemoryRecord memory, Decode<MemoryRecord>(record.value));
        for (const StatePart& part : memory.parts) references.required[part.id] = part.digest;
        return base::OkStatus();
      }));
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      store, user, store::Kind::kCheckpoint, std::nullopt, [&](const store::Record& record) {
        KVASIR_ASSIGN_OR_RETURN(const CheckpointRow row, Decode<CheckpointRow>(record.value));
        references.required[row.part.id] = row.part.digest;
        return base::OkStatus();
      }));
  KVASIR_RETURN_IF_ERROR(ForEachRecord(
      store, user, store::Kind::kSession, std::nullopt, [&](const store::Record& record) {
        KVASIR_ASSIGN_OR_RETURN(const SessionRecord session, Decode<SessionRecord>(record.value));
        for (const MountEntry& mount : session.mounts) {
          for (const StatePart& part : mount.parts) references.mounted.insert(part.id);
        }
        return base::OkStatus();
      }));
  return references;
}

void PutSweep(Core& core, const UserState& user, int64_t wait_us, store::Batch& batch) {
  const int64_t now = core.now_us();
  const auto queued = core.jobs.Get(user.key, kSweepJob);
  // One that is due may be running, past what this commit leaves.
  if (queued && queued->due_us > now && queued->due_us <= now + wait_us) return;
  const JobRecord sweep{.id = kSweepJob,
                        .type = JobRecord::Type::kSweep,
                        .user = user.ref,
                        .due_us = now + wait_us,
                        .create_us = now};
  batch.Put(JobKey(user.key, kSweepJob), Encode(sweep));
  core.jobs.Set(user.key, sweep);
}

base::Status SweepUser(Core& core, const UserRef& user) {
  KVASIR_ASSIGN_OR_RETURN(const ExclusiveUser exclusive, core.users.Exclusive(user));
  KVASIR_ASSIGN_OR_RETURN(const SegmentReferences references,
                          ReadReferences(*core.store, exclusive->key));
  store::Batch batch;
  int64_t bytes = 0;
  KVASIR_RETURN_IF_ERROR(
      ForEachSegment(*core.store, exclusive->key, [&](const store::SegmentRow& row) {
        if (references.required.contains(row.id) || references.mounted.contains(row.id)) {
          bytes += static_cast<int64_t>(row.bytes);
        } else {
          batch.DropSegment(exclusive->key, row.id);
        }
      }));
  if (!batch.empty()) KVASIR_RETURN_IF_ERROR(core.store->Commit(batch));
  absl::MutexLock lock(&exclusive->mutex);
  exclusive->state_bytes = bytes;
  return base::OkStatus();
}

}  // namespace kvasir::service
