// Memories: loading a state, verified, once at a time.
#include "memory/service/memories_impl.h"
#include "memory/service/record_access.h"
#include "memory/service/segment_read.h"
#include "memory/service/session_changes.h"

namespace kvasir::service {
namespace {

using StatePtr = std::shared_ptr<const kv::KvSegment>;

base::Digest StateDigest(const std::vector<StatePart>& parts) {
  base::Hasher hasher;
  for (const StatePart& part : parts) {
    hasher.Add(part.id);
    hasher.Add(part.digest.bytes);
  }
  return hasher.Finish();
}

base::Status CheckLoadable(const Core& core, const MemoryRecord& memory) {
  if (memory.state == MemoryRecord::State::kCorrupt) {
    return base::WithReason(base::DataLoss("the state was found damaged before"), "STATE_CORRUPT");
  }
  if (memory.parts.empty()) {
    return base::WithReason(base::FailedPrecondition("the memory has no state yet"), "NOT_READY");
  }
  const std::string served = core.builder->model_id().digest.Hex();
  if (memory.model_id_hex != served) {
    return base::WithReason(base::FailedPrecondition("state of model {}, the server runs {}",
                                                     memory.model_id_hex, served),
                            "MODEL_MISMATCH");
  }
  return base::OkStatus();
}

SingleFlight::Result ReadState(const Core& core, const store::UserKey& user,
                               const std::vector<StatePart>& parts, int64_t deadline_us) {
  std::vector<StatePtr> read;
  for (const StatePart& part : parts) {
    KVASIR_ASSIGN_OR_RETURN(read.emplace_back(), ReadPart(core, user, part, deadline_us));
  }
  if (read.size() == 1) return read.front();
  auto joined = kv::Join(read);
  if (joined.ok()) return joined;
  return base::WithReason(base::DataLoss("{}", base::ToStd(joined.status().message())),
                          "STATE_CORRUPT");
}

// Records that the memory's state is damaged and queues its rebuild.
void Quarantine(Core& core, const UserRef& user, const store::RecordId& id,
                const base::Digest& damaged) {
  const auto shared = core.users.Shared(user);
  if (!shared.ok()) return;
  UserState& state = **shared;
  std::optional<MemoryRecord> memory = state.FindMemory(id);
  if (!memory) return;
  absl::MutexLock session_lock(&state.LockOf(memory->session));
  memory = state.FindMemory(id);
  // Old parts, which a session had mounted, say nothing about the memory as it is now.
  if (!memory || StateDigest(memory->parts) != damaged) return;
  memory->state = MemoryRecord::State::kCorrupt;
  memory->update_us = core.now_us();
  const JobRecord job{.id = memory->session,
                      .type = JobRecord::Type::kBuildMemory,
                      .user = user,
                      .due_us = core.now_us(),
                      .create_us = core.now_us()};
  const bool room = core.CheckRoomForJob(state.key, job.id).ok();
  store::Batch batch;
  batch.Put(MemoryKey(state.key, memory->id), Encode(*memory));
  if (room) batch.Put(JobKey(state.key, job.id), Encode(job));
  if (!core.store->Commit(batch).ok()) return;  // found again by the next load
  state.SetMemory(*memory);
  if (room) core.jobs.Set(state.key, job);
}

base::Status Deleted() { return base::WithReason(MemoryNotFound(), "DELETED"); }

void CountLoad(Counters& counters, const base::StatusOr<LoadedState>& loaded) {
  absl::MutexLock lock(&counters.mutex);
  if (loaded.ok()) {
    ++(loaded->from_ram ? counters.loads_from_ram : counters.loads_from_disk);
  } else {
    const std::string reason = base::Reason(loaded.status());
    ++counters.misses[reason.empty() ? "LOAD_FAILED" : reason];
  }
}

}  // namespace

base::StatusOr<LoadedState> MemoriesImpl::Load(const UserRef& user, const MemoryRecord& memory,
                                               int64_t deadline_us) {
  auto loaded = LoadParts(user, memory.id, memory.parts, CheckLoadable(core_, memory), deadline_us);
  CountLoad(core_.counters, loaded);
  return loaded;
}

base::StatusOr<LoadedState> MemoriesImpl::LoadMount(const UserRef& user, const MountEntry& mount,
                                                    int64_t deadline_us) {
  base::Status loadable;
  if (mount.deleted || mount.parts.empty()) loadable = Deleted();
  auto loaded = LoadParts(user, mount.memory, mount.parts, loadable, deadline_us);
  CountLoad(core_.counters, loaded);
  return loaded;
}

base::StatusOr<LoadedState> MemoriesImpl::LoadParts(const UserRef& user, const store::RecordId& id,
                                                    const std::vector<StatePart>& parts,
                                                    const base::Status& loadable,
                                                    int64_t deadline_us) {
  const int64_t start_us = core_.clock->MonotonicMicros();
  const StateCache::Key key{core_.users.KeyOf(user), StateDigest(parts)};
  {
    KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
    if (!shared->FindMemory(id)) return Deleted();
  }
  KVASIR_RETURN_IF_ERROR(loadable);
  LoadedState loaded{.segment = core_.cache.Get(key), .digest = key.state};
  loaded.from_ram = loaded.segment != nullptr;
  base::Status failed;
  if (!loaded.from_ram) {
    auto state = core_.loads.Run(key, deadline_us, [&]() -> SingleFlight::Result {
      if (StatePtr cached = core_.cache.Get(key)) return cached;
      return ReadState(core_, key.user, parts, deadline_us);
    });
    if (base::Reason(state.status()) == "STATE_CORRUPT") Quarantine(core_, user, id, key.state);
    failed = state.status();
    if (state.ok()) loaded.segment = *std::move(state);
  }
  // Deleted meanwhile? With the gate held, a deletion purges the cache after this, not before.
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  if (!shared->FindMemory(id)) return Deleted();
  KVASIR_RETURN_IF_ERROR(failed);
  core_.cache.Put(key, id, loaded.segment);
  loaded.load_ms = static_cast<double>(core_.clock->MonotonicMicros() - start_us) / 1000;
  return loaded;
}

}  // namespace kvasir::service
