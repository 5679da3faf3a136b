#include "router/server/handlers/to_proto.h"

#include <algorithm>
#include <limits>

#include "router/server/resource_names.h"

namespace kvasir::server {
namespace {

using service::MemoryRecord;
using service::TurnRecord;

int32_t Int32(int64_t value) {
  return static_cast<int32_t>(std::min<int64_t>(value, std::numeric_limits<int32_t>::max()));
}

v1::Tier ToProto(MountedInfo::Tier tier) {
  switch (tier) {
    case MountedInfo::Tier::kUnknown:
      return v1::TIER_UNSPECIFIED;
    case MountedInfo::Tier::kRam:
      return v1::TIER_RAM;
    case MountedInfo::Tier::kDisk:
      return v1::TIER_DISK;
  }
  return v1::TIER_UNSPECIFIED;
}

v1::MissReason ToProto(policy::Unmounted reason) {
  switch (reason) {
    case policy::Unmounted::kBelowGate:
    case policy::Unmounted::kModeOff:
      return v1::MISS_REASON_LOW_SCORE;
    case policy::Unmounted::kMountLimit:
    case policy::Unmounted::kAlreadyMounted:
      return v1::MISS_REASON_MOUNT_LIMIT;
    case policy::Unmounted::kSlotBudget:
      return v1::MISS_REASON_SLOT_BUDGET;
    case policy::Unmounted::kNoRoom:
      return v1::MISS_REASON_NO_ROOM_IN_SESSION;
    case policy::Unmounted::kNotReady:
      return v1::MISS_REASON_NOT_BUILT;
    case policy::Unmounted::kModelMismatch:
      return v1::MISS_REASON_MODEL_MISMATCH;
    case policy::Unmounted::kStateCorrupt:
      return v1::MISS_REASON_STATE_CORRUPT;
    case policy::Unmounted::kLoadTimeout:
      return v1::MISS_REASON_LOAD_TIMEOUT;
    case policy::Unmounted::kLoadFailed:
      return v1::MISS_REASON_LOAD_FAILED;
    case policy::Unmounted::kDeleted:
      return v1::MISS_REASON_DELETED;
  }
  return v1::MISS_REASON_UNSPECIFIED;
}

v1::Memory::State ToProto(MemoryRecord::State state) {
  switch (state) {
    case MemoryRecord::State::kExact:
      return v1::Memory::STATE_EXACT;
    case MemoryRecord::State::kCompacted:
      return v1::Memory::STATE_COMPACTED;
    case MemoryRecord::State::kStale:
      return v1::Memory::STATE_STALE;
    case MemoryRecord::State::kRebuilding:
      return v1::Memory::STATE_REBUILDING;
    case MemoryRecord::State::kCorrupt:
      return v1::Memory::STATE_CORRUPT;
    case MemoryRecord::State::kDeleted:
      return v1::Memory::STATE_DELETED;
  }
  return v1::Memory::STATE_UNSPECIFIED;
}

// Digest over the parts, as LoadedState names the state.
std::string DigestOf(const std::vector<service::StatePart>& parts) {
  base::Hasher hasher;
  for (const service::StatePart& part : parts) {
    hasher.Add(part.id);
    hasher.Add(part.digest.bytes);
  }
  return hasher.Finish().Hex();
}

v1::KvInfo KvOf(const MemoryRecord& memory) {
  v1::KvInfo kv;
  kv.set_model_id(memory.model_id_hex);
  kv.set_build_id(memory.build_id);
  kv.set_logical_tokens(Int32(memory.logical_tokens));
  kv.set_slots(Int32(memory.logical_tokens));
  kv.set_method("none");
  int64_t bytes = 0;
  for (const service::StatePart& part : memory.parts) bytes += part.bytes;
  kv.set_bytes(bytes);
  kv.set_digest(DigestOf(memory.parts));
  kv.set_tier(v1::TIER_DISK);
  return kv;
}

}  // namespace

google::protobuf::Timestamp ToTimestamp(int64_t wall_us) {
  google::protobuf::Timestamp time;
  time.set_seconds(wall_us / 1'000'000);
  time.set_nanos(static_cast<int32_t>(wall_us % 1'000'000) * 1000);
  return time;
}

v1::MemoryMode ToProto(service::MemoryMode mode) {
  switch (mode) {
    case service::MemoryMode::kOff:
      return v1::MEMORY_MODE_OFF;
    case service::MemoryMode::kRead:
      return v1::MEMORY_MODE_READ;
    case service::MemoryMode::kReadWrite:
      return v1::MEMORY_MODE_READ_WRITE;
    case service::MemoryMode::kIncognito:
      return v1::MEMORY_MODE_INCOGNITO;
  }
  return v1::MEMORY_MODE_UNSPECIFIED;
}

std::optional<service::MemoryMode> FromProto(v1::MemoryMode mode) {
  switch (mode) {
    case v1::MEMORY_MODE_OFF:
      return service::MemoryMode::kOff;
    case v1::MEMORY_MODE_READ:
      return service::MemoryMode::kRead;
    case v1::MEMORY_MODE_READ_WRITE:
      return service::MemoryMode::kReadWrite;
    case v1::MEMORY_MODE_INCOGNITO:
      return service::MemoryMode::kIncognito;
    default:
      return std::nullopt;
  }
}

v1::FinishReason FinishReasonFrom(const std::string& name) {
  if (name == "STOP") return v1::FINISH_REASON_STOP;
  if (name == "LENGTH") return v1::FINISH_REASON_LENGTH;
  if (name == "CONTEXT_LENGTH") return v1::FINISH_REASON_CONTEXT_LENGTH;
  if (name == "CANCELLED" || name == "MEMORY_DELETED") return v1::FINISH_REASON_CANCELLED;
  if (name == "INTERRUPTED" || name == "SERVER_STOPPED" || name == "NOT_FINISHED") {
    return v1::FINISH_REASON_INTERRUPTED;
  }
  return name.empty() ? v1::FINISH_REASON_UNSPECIFIED : v1::FINISH_REASON_ERROR;
}

v1::Session ToProto(const std::string& user, const std::string& model,
                    const service::SessionRecord& session) {
  v1::Session out;
  out.set_name(Format(SessionName{user, session.name}));
  out.set_display_name(session.display_name);
  out.set_system_prompt(session.system_prompt);
  out.set_memory_mode(ToProto(session.mode));
  out.set_model(FormatModel(model));
  const bool closed = session.state == service::SessionRecord::State::kClosed;
  out.set_state(closed ? v1::Session::STATE_CLOSED : v1::Session::STATE_OPEN);
  out.set_turn_count(Int32(session.next_turn - 1));
  if (session.memory) out.set_memory(Format(MemoryName{user, session.memory->Hex()}));
  *out.mutable_create_time() = ToTimestamp(session.create_us);
  *out.mutable_update_time() = ToTimestamp(session.update_us);
  if (closed) *out.mutable_close_time() = ToTimestamp(session.close_us);
  return out;
}

v1::Usage ToProto(const service::TurnUsage& usage) {
  v1::Usage out;
  out.set_prompt_tokens(Int32(usage.prompt_tokens()));
  out.set_computed_tokens(Int32(usage.computed_tokens));
  out.set_session_cached_tokens(Int32(usage.session_cached_tokens));
  out.set_memory_tokens(Int32(usage.memory_tokens));
  out.set_memory_slots(Int32(usage.memory_slots));
  out.set_output_tokens(Int32(usage.output_tokens));
  out.set_queue_ms(usage.queue_ms);
  out.set_restore_ms(usage.restore_ms);
  out.set_ttft_ms(usage.ttft_ms);
  out.set_decode_ms(usage.decode_ms);
  return out;
}

v1::Route ToProto(const std::string& user, const RouteInfo& route) {
  v1::Route out;
  out.set_memory_mode(ToProto(route.mode));
  for (const MountedInfo& mount : route.mounts) {
    v1::MountedMemory* one = out.add_mounts();
    one->set_memory(Format(MemoryName{user, mount.memory}));
    one->set_title(mount.title);
    one->set_score(mount.score);
    one->set_tier(ToProto(mount.tier));
    one->set_slots(Int32(mount.slots));
    one->set_logical_tokens(Int32(mount.logical_tokens));
    one->set_restore_ms(mount.restore_ms);
    one->set_digest(mount.digest);
    one->set_frame(Int32(mount.frame));
    one->set_kept(mount.kept);
  }
  for (const UnusedInfo& unused : route.unused) {
    v1::UnusedMemory* one = out.add_unused();
    one->set_memory(Format(MemoryName{user, unused.memory}));
    one->set_title(unused.title);
    one->set_score(unused.score);
    one->set_reason(ToProto(unused.reason));
    one->set_detail(unused.detail);
  }
  out.set_memory_slots(Int32(route.slots()));
  out.set_memory_tokens(Int32(route.logical_tokens()));
  out.set_restore_ms(route.restore_ms);
  return out;
}

v1::Turn ToProto(const std::string& user, const std::string& session, const TurnRecord& turn,
                 const RouteInfo& route) {
  v1::Turn out;
  out.set_name(Format(TurnName{user, session, turn.number}));
  const bool running = turn.state == TurnRecord::State::kRunning;
  out.set_state(running ? v1::Turn::STATE_RUNNING : v1::Turn::STATE_DONE);
  out.set_message(turn.user_text);
  out.set_text(turn.reply_text);
  if (turn.state == TurnRecord::State::kFailed && turn.finish_reason.empty()) {
    out.set_finish_reason(v1::FINISH_REASON_INTERRUPTED);
  } else {
    out.set_finish_reason(FinishReasonFrom(turn.finish_reason));
  }
  if (!running) *out.mutable_usage() = ToProto(turn.usage);
  *out.mutable_route() = ToProto(user, route);
  out.set_request_id(turn.request_id);
  *out.mutable_create_time() = ToTimestamp(turn.create_us);
  if (turn.finish_us != 0) *out.mutable_finish_time() = ToTimestamp(turn.finish_us);
  return out;
}

v1::Memory ToProto(const std::string& user, const std::string& session,
                   const MemoryRecord& memory) {
  v1::Memory out;
  out.set_name(Format(MemoryName{user, memory.name}));
  out.set_state(ToProto(memory.state));
  out.set_title(memory.title);
  if (!session.empty()) {
    for (const int64_t turn : memory.source_turns) {
      out.add_source_turns(Format(TurnName{user, session, turn}));
    }
  }
  if (!memory.parts.empty()) *out.mutable_kv() = KvOf(memory);
  out.set_use_count(Int32(memory.use_count));
  *out.mutable_create_time() = ToTimestamp(memory.create_us);
  *out.mutable_update_time() = ToTimestamp(memory.update_us);
  if (memory.delete_us != 0) *out.mutable_delete_time() = ToTimestamp(memory.delete_us);
  if (memory.last_use_us != 0) *out.mutable_last_use_time() = ToTimestamp(memory.last_use_us);
  return out;
}

v1::Erasure ToProto(const service::ErasureRecord& erasure) {
  v1::Erasure out;
  out.set_name(FormatErasure(erasure.id.Hex()));
  const bool done = erasure.state == service::ErasureRecord::State::kDone;
  out.set_state(done ? v1::Erasure::STATE_DONE : v1::Erasure::STATE_RUNNING);
  const auto add_stage = [&](v1::ErasureStage::Kind kind, int64_t at_us) {
    v1::ErasureStage* stage = out.add_stages();
    stage->set_kind(kind);
    *stage->mutable_time() = ToTimestamp(at_us);
  };
  add_stage(v1::ErasureStage::KIND_FENCED, erasure.request_us);
  if (done) {
    add_stage(v1::ErasureStage::KIND_RECORDS_DELETED, erasure.done_us);
    add_stage(v1::ErasureStage::KIND_FILES_REWRITTEN, erasure.done_us);
    const auto add_count = [&](const char* kind, int64_t count) {
      v1::ErasedRecords* records = out.add_removed();
      records->set_kind(kind);
      records->set_count(count);
    };
    add_count("sessions", erasure.sessions);
    add_count("turns", erasure.turns);
    add_count("memories", erasure.memories);
    add_count("states", erasure.segments);
  }
  *out.mutable_create_time() = ToTimestamp(erasure.request_us);
  return out;
}

v1::ChatResponse ToProto(const std::string& user, const std::string& session, int64_t turn,
                         int64_t seq, const TurnEvent& event) {
  v1::ChatResponse out;
  out.set_seq(Int32(seq));
  out.set_turn(Format(TurnName{user, session, turn}));
  if (const auto* route = std::get_if<RouteInfo>(&event)) {
    *out.mutable_route() = ToProto(user, *route);
  } else if (const auto* delta = std::get_if<DeltaEvent>(&event)) {
    out.mutable_delta()->set_text(delta->text);
    out.mutable_delta()->add_token_ids(delta->token);
    if (delta->logprob) out.mutable_delta()->add_logprobs(static_cast<float>(*delta->logprob));
  } else if (const auto* usage = std::get_if<service::TurnUsage>(&event)) {
    *out.mutable_usage() = ToProto(*usage);
  } else {
    out.mutable_finish()->set_turn(out.turn());
    out.mutable_finish()->set_reason(FinishReasonFrom(std::get<FinishEvent>(event).reason));
  }
  return out;
}

}  // namespace kvasir::server
