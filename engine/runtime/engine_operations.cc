// Work between two steps: Restore, MakeMountable, Cut.
#include <utility>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

base::Status CheckModel(const kv::KvSegment& segment, const kv::ModelId& model_id) {
  if (segment.info().model_id == model_id) return base::OkStatus();
  return base::WithReason(
      base::FailedPrecondition("the state was made for model {}, this is {}",
                               segment.info().model_id.digest.Hex(), model_id.digest.Hex()),
      "MODEL_MISMATCH");
}

base::Status CheckTurns(const std::vector<kv::TurnRange>& turns, int64_t tokens) {
  int64_t free_from = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].begin < free_from || turns[i].end <= turns[i].begin || turns[i].end > tokens) {
      return base::InvalidArgument("turn range {} is [{}, {}), it must lie in [{}, {})", i,
                                   turns[i].begin, turns[i].end, free_from, tokens);
    }
    free_from = turns[i].end;
  }
  return base::OkStatus();
}

int64_t PagesOf(const kv::KvSegment& segment) {
  const int64_t first = segment.info().first_position;
  const int64_t last = first + segment.logical_tokens() - 1;
  return last / kernels::kPageSlots - first / kernels::kPageSlots + 1;
}

}  // namespace

void Engine::Restore(std::shared_ptr<Sequence> sequence,
                     std::vector<std::shared_ptr<const kv::KvSegment>> parts,
                     std::function<void(base::Status)> done) {
  const base::Status claimed = sequence->Claim();
  if (!claimed.ok()) {
    done(claimed);
    return;
  }
  State* const s = state_.get();
  s->Post({.run = [s, sequence, parts = std::move(parts),
                   done] { s->RunRestore(*sequence, parts, done); },
           .fail =
               [s, sequence, done](const base::Status& status) {
                 sequence->Release(s->NextUse());
                 done(status);
               }});
}

void Engine::State::RunRestore(Sequence& sequence,
                               const std::vector<std::shared_ptr<const kv::KvSegment>>& parts,
                               const std::function<void(base::Status)>& done) {
  const int64_t end = sequence.end();
  const base::Status status = AppendParts(sequence, parts);
  if (!status.ok()) sequence.Truncate(end);
  sequence.Release(NextUse());
  done(status);
}

base::Status Engine::State::AppendParts(
    Sequence& sequence, const std::vector<std::shared_ptr<const kv::KvSegment>>& parts) {
  int64_t end = sequence.end();
  for (const auto& part : parts) end += part->logical_tokens();
  if (end > deps.model->options().positions_max) {
    return base::InvalidArgument("the parts end at position {}, the context holds {}", end,
                                 deps.model->options().positions_max);
  }
  const int64_t pages = sequence.tail_->PagesNeeded(end);
  if (!MakeRoom(model::PageKind::kTail, pages, nullptr, PageUse::kOperation)) {
    return base::ResourceExhausted("the parts need {} pages, {} can be had", pages,
                                   pool->pages_available(model::PageKind::kTail));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const kv::SegmentInfo& info = parts[i]->info();
    KVASIR_RETURN_IF_ERROR(CheckModel(*parts[i], deps.model_id));
    if (info.parent_id != sequence.ContextAt(sequence.end())) {
      return base::FailedPrecondition("part {} follows context {}, the sequence ends with {}", i,
                                      info.parent_id.Hex(),
                                      sequence.ContextAt(sequence.end()).Hex());
    }
    KVASIR_RETURN_IF_ERROR(sequence.tail_->Append(*deps.model, *parts[i]));
    sequence.AddTokens(info.tokens);
    if (info.context_id != sequence.ContextAt(sequence.end())) {
      return base::FailedPrecondition("part {} says it ends with context {}, its tokens give {}", i,
                                      info.context_id.Hex(),
                                      sequence.ContextAt(sequence.end()).Hex());
    }
  }
  return base::OkStatus();
}

void Engine::MakeMountable(const base::Digest& key, std::shared_ptr<const kv::KvSegment> segment,
                           MountDone done) {
  State* const s = state_.get();
  s->Post({.run = [s, key, segment = std::move(segment), done] { done(s->RunMake(key, *segment)); },
           .fail = [done](const base::Status& status) { done(status); }});
}

base::StatusOr<std::shared_ptr<const MountableSegment>> Engine::State::RunMake(
    const base::Digest& key, const kv::KvSegment& segment) {
  if (auto cached = mounts.Find(key, NextUse())) return cached;
  KVASIR_RETURN_IF_ERROR(CheckModel(segment, deps.model_id));
  const int64_t pages = PagesOf(segment);
  if (!MakeRoom(model::PageKind::kResident, pages, nullptr, PageUse::kOperation)) {
    return base::ResourceExhausted("the segment needs {} pages, {} can be had", pages,
                                   pool->pages_available(model::PageKind::kResident));
  }
  auto mountable = std::make_shared<MountableSegment>();
  mountable->pool = pool;
  KVASIR_ASSIGN_OR_RETURN(mountable->resident,
                          model::ResidentSegment::Make(*deps.model, *pool, segment));
  mountable->tokens = segment.info().tokens;
  mountable->parent_id = segment.info().parent_id;
  mountable->context_id = segment.info().context_id;
  mounts.Insert(key, mountable, NextUse());
  return std::shared_ptr<const MountableSegment>(std::move(mountable));
}

void Engine::Cut(std::shared_ptr<Sequence> sequence, int64_t begin, int64_t end,
                 std::vector<kv::TurnRange> turns, CutDone done) {
  State* const s = state_.get();
  s->Post({.run = [s, sequence = std::move(sequence), begin, end, turns = std::move(turns),
                   done] { done(s->RunCut(*sequence, begin, end, turns)); },
           .fail = [done](const base::Status& status) { done(status); }});
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> Engine::State::RunCut(
    const Sequence& sequence, int64_t begin, int64_t end,
    const std::vector<kv::TurnRange>& turns) const {
  if (sequence.tail_ == nullptr) return base::FailedPrecondition("the sequence was evicted");
  if (begin < sequence.first_position_ || begin >= end) {
    return base::OutOfRange("[{}, {}) is no range of a tail that begins at {}", begin, end,
                            sequence.first_position_);
  }
  if (end > sequence.end()) {
    if (sequence.view().running) {
      return base::FailedPrecondition("the tail ends at {} now, {} was asked for", sequence.end(),
                                      end);
    }
    return base::OutOfRange("the tail ends at {}, {} was asked for", sequence.end(), end);
  }
  KVASIR_RETURN_IF_ERROR(CheckTurns(turns, end - begin));
  kv::SegmentInfo info;
  info.model_id = deps.model_id;
  info.build_id = deps.build_id;
  info.parent_id = sequence.ContextAt(begin);
  info.context_id = sequence.ContextAt(end);
  info.turns = turns;
  return sequence.tail_->Cut(*deps.model, begin, end, std::move(info));
}

}  // namespace kvasir::runtime
