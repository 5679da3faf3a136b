#include "engine/runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/check.h"
#include "engine/runtime/engine_state.h"

namespace kvasir::runtime {
namespace {

base::Status CheckAtLeastOne(const char* name, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return base::OkStatus();
  return base::InvalidArgument("engine option {} is {}, 1 to {} are allowed", name, value, max);
}

base::Status CheckOptions(const Engine::Options& o, const model::Model::Options& m) {
  constexpr int64_t kMany = 1 << 24;
  if (o.kv_bytes == 0) return base::InvalidArgument("engine option kv_bytes is 0");
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("step_rows_max", o.step_rows_max, m.rows_max));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("prefill_chunk", o.prefill_chunk, kMany));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("background_chunk", o.background_chunk, kMany));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("requests_running_max", o.requests_running_max,
                                         std::min(o.step_rows_max, m.logits_rows_max)));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("requests_queued_max", o.requests_queued_max, kMany));
  KVASIR_RETURN_IF_ERROR(
      CheckAtLeastOne("requests_queued_key_max", o.requests_queued_key_max, kMany));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("sequences_idle_max", o.sequences_idle_max, kMany));
  KVASIR_RETURN_IF_ERROR(CheckAtLeastOne("operations_max", o.operations_max, kMany));
  return CheckAtLeastOne("output_tokens_max", o.output_tokens_max, kMany);
}

base::Status CheckMounts(const std::vector<SequenceMount>& mounts, int64_t first_position) {
  int64_t free_from = 0;
  for (size_t i = 0; i < mounts.size(); ++i) {
    if (mounts[i].begin < free_from) {
      return base::InvalidArgument("mount {} begins at position {}, {} is the first free one", i,
                                   mounts[i].begin, free_from);
    }
    if (mounts[i].end() > first_position) {
      return base::InvalidArgument("mount {} ends at position {}, the tail begins at {}", i,
                                   mounts[i].end(), first_position);
    }
    free_from = mounts[i].end();
  }
  return base::OkStatus();
}

base::Status CheckChanges(const std::vector<MountChange>& changes, int64_t first_position) {
  if (changes.empty() || changes.size() > kMountChangesMax) {
    return base::InvalidArgument("{} changes of mounts, 1 to {} are allowed", changes.size(),
                                 kMountChangesMax);
  }
  if (changes[0].from > first_position) {
    return base::InvalidArgument(
        "the first mounts are those from position {} on, the tail begins "
        "at {}",
        changes[0].from, first_position);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    KVASIR_RETURN_IF_ERROR(CheckMounts(changes[i].mounts, first_position));
    const int64_t least = i == 0 ? 0 : std::max(changes[i - 1].from, first_position) + 1;
    if (changes[i].from < least) {
      return base::InvalidArgument("change {} of the mounts is at position {}, {} is the least", i,
                                   changes[i].from, least);
    }
  }
  return base::OkStatus();
}

}  // namespace

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "STOP";
    case FinishReason::kLength:
      return "LENGTH";
    case FinishReason::kCancelled:
      return "CANCELLED";
    case FinishReason::kDeadline:
      return "DEADLINE";
    case FinishReason::kError:
      return "ERROR";
  }
  return "";
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

base::StatusOr<std::unique_ptr<Engine>> Engine::Create(const Dependencies& dependencies,
                                                       const Options& options) {
  KVASIR_RETURN_IF_ERROR(CheckOptions(options, dependencies.model->options()));
  return std::unique_ptr<Engine>(new Engine(std::make_unique<State>(dependencies, options)));
}

Engine::~Engine() {
  Shutdown(0);
  for (const auto& sequence : state_->Sequences()) sequence->Evict();
  state_->mounts.Clear();
}

void Engine::Start() {
  const std::lock_guard lock(state_->shutdown_mutex);
  KVASIR_CHECK(!state_->thread.joinable());
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
}

bool Engine::Step() { return state_->Step(); }

int64_t Engine::context_tokens_max() const { return state_->deps.model->options().positions_max; }
const model::Model& Engine::model() const { return *state_->deps.model; }
const kv::ModelId& Engine::model_id() const { return state_->deps.model_id; }
const kv::BuildId& Engine::build_id() const { return state_->deps.build_id; }

base::StatusOr<std::shared_ptr<Sequence>> Engine::NewSequence(int64_t first_position,
                                                              std::vector<SequenceMount> mounts) {
  std::vector<MountChange> changes(1);
  changes[0] = {.from = first_position, .mounts = std::move(mounts)};
  return NewSequenceWithChanges(first_position, std::move(changes));
}

base::StatusOr<std::shared_ptr<Sequence>> Engine::NewSequenceWithChanges(
    int64_t first_position, std::vector<MountChange> changes) {
  if (first_position < 0 || first_position >= context_tokens_max()) {
    return base::InvalidArgument("the tail begins at position {}, the context has {}",
                                 first_position, context_tokens_max());
  }
  KVASIR_RETURN_IF_ERROR(CheckChanges(changes, first_position));
  std::shared_ptr<Sequence> sequence(
      new Sequence(state_->pool, model_id(), first_position, std::move(changes)));
  sequence->last_use_ = state_->NextUse();
  state_->Register(sequence);
  return sequence;
}

base::Status Engine::SetMounts(const std::shared_ptr<Sequence>& sequence, MountChange change) {
  KVASIR_RETURN_IF_ERROR(sequence->Claim());
  base::Status status = CheckMounts(change.mounts, sequence->first_position_);
  if (status.ok() && change.from < sequence->end()) {
    status = base::InvalidArgument("the mounts change at position {}, the tail ends at {}",
                                   change.from, sequence->end());
  }
  if (status.ok() && sequence->changes_.size() >= kMountChangesMax) {
    status = base::ResourceExhausted("the mounts changed {} times, at most {} are allowed",
                                     sequence->changes_.size(), kMountChangesMax);
  }
  if (status.ok()) sequence->SetMounts(std::move(change));
  sequence->Release(state_->NextUse());
  return status;
}

base::StatusOr<RequestId> Engine::Submit(GenerateRequest request) {
  State& s = *state_;
  KVASIR_RETURN_IF_ERROR(s.CheckRequest(request));
  KVASIR_ASSIGN_OR_RETURN(StopMatcher stops, StopMatcher::Create(std::move(request.stop)));
  const std::shared_ptr<Sequence> sequence = request.sequence;
  KVASIR_RETURN_IF_ERROR(sequence->Claim());
  const base::Status fits = s.CheckFits(request);
  if (!fits.ok()) {
    sequence->Release(s.NextUse());
    return fits;
  }
  const auto id = s.Enqueue(std::move(request), std::move(stops));
  if (!id.ok()) sequence->Release(s.NextUse());
  return id;
}

void Engine::Cancel(RequestId id) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->live.find(id);
  if (found != state_->live.end()) found->second->cancelled = true;
}

void Engine::Drain() {
  const std::lock_guard lock(state_->mutex);
  state_->draining = true;
}

void Engine::Shutdown(int64_t deadline_us) {
  State& s = *state_;
  Drain();
  const std::lock_guard shutdown_lock(s.shutdown_mutex);
  if (s.thread.joinable()) {
    std::unique_lock lock(s.mutex);
    while (!s.live.empty() && s.deps.clock->MonotonicMicros() < deadline_us) {
      s.idle.wait_for(lock, std::chrono::milliseconds(10));  // the clock may not be the machine's
    }
    s.stopping = true;
    lock.unlock();
    s.work_waits = true;
    s.wake.notify_all();
    s.thread.join();
  }
  s.EndAll(FinishReason::kCancelled, base::Unavailable("the engine was shut down"));
  s.FailOperations(base::Unavailable("the engine was shut down"));
}

std::shared_ptr<const MountableSegment> Engine::FindMountable(const base::Digest& key) {
  return state_->mounts.Find(key, state_->NextUse());
}

void Engine::ForgetMountable(const base::Digest& key) { state_->mounts.Erase(key); }

Engine::Stats Engine::stats() const {
  Stats stats;
  {
    const std::lock_guard lock(state_->mutex);
    stats = state_->counters;
    stats.requests_queued = state_->queued;
    stats.requests_running = static_cast<int64_t>(state_->live.size()) - state_->queued;
    stats.operations_pending = static_cast<int64_t>(state_->operations.size());
  }
  stats.kv_bytes_used = state_->pool->bytes_used();
  stats.kv_bytes_max = state_->pool->bytes_max();
  stats.mount_bytes_cached = state_->mounts.bytes();
  for (const auto& sequence : state_->Sequences()) {
    const Sequence::View view = sequence->view();
    if (view.resident && !view.running) ++stats.sequences_idle;
  }
  return stats;
}

}  // namespace kvasir::runtime
