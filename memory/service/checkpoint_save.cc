#include "memory/service/checkpoint_save.h"

#include <algorithm>

#include "memory/service/references.h"

namespace kvasir::service {

int64_t SealedParts::bytes() const {
  int64_t sum = 0;
  for (const StatePart& part : parts) sum += part.bytes;
  return sum;
}

base::StatusOr<SealedParts> Seal(Core& core, const store::UserKey& user,
                                 const std::vector<std::shared_ptr<const kv::KvSegment>>& parts) {
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey key, core.store->key_ring().UserDataKey(user));
  SealedParts sealed;
  for (const auto& part : parts) {
    kv::SegmentId id;
    core.entropy->Fill(id);
    const auto encoded =
        std::make_shared<const kv::EncodedSegment>(kv::Encode(*part, id, key, *core.entropy));
    sealed.parts.push_back({.id = id,
                            .digest = encoded->digest,
                            .first_position = part->info().first_position,
                            .tokens = static_cast<int32_t>(part->logical_tokens()),
                            .bytes = static_cast<int64_t>(encoded->bytes())});
    sealed.segments.push_back(encoded);
  }
  return sealed;
}

base::Status CheckpointSave::PutRows(int64_t turn, const SealedParts& sealed, bool replaces_last) {
  KVASIR_ASSIGN_OR_RETURN(rows_, ReadCheckpoint(*core_.store, user_.key, session_.id));
  for (const CheckpointRow& row : rows_) stored_.push_back(row.part.id);
  // The stored parts that the new ones continue: all, all but the last, or those that were whole.
  const int64_t first = sealed.parts.front().first_position;
  size_t kept = 0;
  int64_t end = session_.offset;
  while (kept < rows_.size() && end < first) {
    end = rows_[kept].part.first_position + rows_[kept].part.tokens;
    ++kept;
  }
  if (end != first || (replaces_last && kept == rows_.size())) {
    return base::InvalidArgument(
        "parts from position {}{} do not fit the {} stored ones, which end a part at {}", first,
        replaces_last ? ", to replace the last one," : "", rows_.size(), end);
  }
  for (size_t i = kept; i < rows_.size(); ++i) {
    replaced_.push_back(rows_[i].part);
    batch_.Delete(CheckpointKey(user_.key, session_.id, i));
  }
  rows_.resize(kept);
  for (size_t i = 0; i < sealed.parts.size(); ++i) {
    batch_.AddSegment(user_.key, sealed.segments[i]);
    rows_.push_back({sealed.parts[i], turn});
    batch_.Put(CheckpointKey(user_.key, session_.id, rows_.size() - 1), Encode(rows_.back()));
  }
  return base::OkStatus();
}

// The memory of a promotable session is its checkpoint. One that was rebuilt because the checkpoint
// is damaged or was made otherwise than states are now, or waits for that, goes on from text.
base::Status CheckpointSave::PutMemory(int64_t turn) {
  if (!Promotable(session_, core_.builder->base_tokens())) return base::OkStatus();
  std::vector<int64_t> known;
  if (session_.memory) {
    if (const auto memory = user_.FindMemory(*session_.memory)) {
      const bool same = std::ranges::equal(memory->parts, stored_, {}, &StatePart::id);
      const bool usable = memory->state == MemoryRecord::State::kExact;
      const bool continues = same && IsCurrent(core_, *memory);
      if (!usable || (!continues && !stored_.empty())) return base::OkStatus();
      if (!memory->source_turns.empty() && memory->source_turns.back() > turn) {
        return base::OkStatus();  // it holds more than this save
      }
      replaced_.insert(replaced_.end(), memory->parts.begin(), memory->parts.end());
      known = memory->source_turns;
    }
  }
  const int64_t first_new = known.empty() ? 1 : known.back() + 1;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<TurnRecord> turns,
                          ReadTurns(*core_.store, user_.key, session_.id, first_new, turn));
  std::vector<const TurnRecord*> learned;
  for (const TurnRecord& record : turns) {
    if (Learnable(session_, record)) learned.push_back(&record);
  }
  if (known.empty() && learned.empty()) return base::OkStatus();
  KVASIR_ASSIGN_OR_RETURN(
      MemoryRecord memory,
      MemoryOf(core_, user_, session_, learned.empty() ? "" : learned.front()->user_text));
  index_.memory = memory.id;
  if (known.empty()) index_.AddDate(core_, session_);
  for (const TurnRecord* record : learned) {
    memory.source_turns.push_back(record->number);
    index_.AddTurn(core_, *record);
  }
  memory.state = MemoryRecord::State::kExact;
  memory.parts.clear();
  memory.logical_tokens = 0;
  for (const CheckpointRow& row : rows_) {
    memory.parts.push_back(row.part);
    memory.logical_tokens += row.part.tokens;
  }
  memory.model_id_hex = core_.builder->model_id().digest.Hex();
  memory.build_id = core_.builder->build_id().text;
  memory.update_us = core_.now_us();
  session_.memory = memory.id;
  batch_.Put(MemoryKey(user_.key, memory.id), Encode(memory));
  batch_.Put(SessionKey(user_.key, session_.id), Encode(session_));
  index_.Put(user_.key, batch_);
  memory_ = std::move(memory);
  return base::OkStatus();
}

// With the memory up to the last turn there is nothing left to build.
void CheckpointSave::PutJobDone(int64_t turn) {
  job_done_ = memory_ && turn == session_.next_turn - 1;
  if (job_done_) batch_.Delete(JobKey(user_.key, session_.id));
}

// Replaced segments go, but for those that a memory's state still needs; what is kept only because
// a session has it mounted, a later sweep removes.
void CheckpointSave::DropReplaced() {
  std::optional<MemoryRecord> memory = memory_;
  if (!memory && session_.memory) memory = user_.FindMemory(*session_.memory);
  const bool mounted = memory && user_.IsMounted(memory->id);
  for (const StatePart& part : replaced_) {
    if (memory && Contains(memory->parts, part.id)) continue;
    if (mounted) return PutSweep(core_, user_, kSweepWaitUs, batch_);
    voiding_.Drop(part, batch_);
  }
}

void CheckpointSave::Apply(int64_t added_bytes) {
  if (memory_) {
    user_.SetMemory(*memory_);
    index_.Apply(user_);
  }
  if (job_done_) core_.jobs.Remove(user_.key, session_.id);
  absl::MutexLock lock(&user_.mutex);
  user_.state_bytes += added_bytes - voiding_.freed_bytes();
  user_.sessions[session_.id] = MakeEntry(session_);
}

base::Status CheckpointSave::Run(int64_t turn, const SealedParts& sealed, bool replaces_last) {
  if (turn <= session_.void_turn) {
    return base::Aborted("the state of turn {} is void: something it used was deleted", turn);
  }
  KVASIR_RETURN_IF_ERROR(PutRows(turn, sealed, replaces_last));
  KVASIR_RETURN_IF_ERROR(PutMemory(turn));
  PutJobDone(turn);
  DropReplaced();
  {
    absl::MutexLock lock(&user_.mutex);
    const int64_t wanted = user_.state_bytes + sealed.bytes() - voiding_.freed_bytes();
    if (wanted > core_.options.state_bytes_per_user_max) {
      return MemoryQuotaExceeded("bytes of states", wanted, core_.options.state_bytes_per_user_max);
    }
  }
  KVASIR_RETURN_IF_ERROR(core_.store->Commit(batch_));
  Apply(sealed.bytes());
  return base::OkStatus();
}

}  // namespace kvasir::service
