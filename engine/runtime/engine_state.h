// Engine::State: what the engine knows, and the parts of a step. Internal to engine/runtime.
//
// engine.cc: public methods. engine_operations.cc: Restore, MakeMountable, Cut. engine_step.cc: the
// step. engine_admission.cc: which requests run. engine_pages.cc: who gives pages up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/runtime/engine.h"
#include "engine/runtime/fair_share.h"
#include "engine/runtime/live_request.h"
#include "engine/runtime/mount_cache.h"
#include "engine/runtime/step_plan.h"

namespace kvasir::runtime {

using LivePtr = std::shared_ptr<LiveRequest>;

// Work between two steps. Exactly one of the two is called, once.
struct Operation {
  std::function<void()> run;  // on the engine's thread
  std::function<void(const base::Status&)> fail;
};

// What pages are wanted for; it decides who may be preempted.
enum class PageUse { kGrow, kAdmit, kOperation };

// A request's part of a step.
struct BatchItem {
  LivePtr request;
  int64_t rows = 0;
  bool wants_logits = false;
};

struct Engine::State {
  State(const Dependencies& dependencies, const Options& engine_options);

  // Any thread.
  void Post(Operation operation);
  base::Status CheckRequest(const GenerateRequest& request) const;
  base::Status CheckFits(const GenerateRequest& request) const;
  base::StatusOr<RequestId> Enqueue(GenerateRequest request, StopMatcher stops);
  uint64_t NextUse() { return ++use_counter; }
  void Register(const std::shared_ptr<Sequence>& sequence);
  std::vector<std::shared_ptr<Sequence>> Sequences();

  // The engine's thread from here on.
  bool Step();
  void Loop();
  bool TakeWork();
  bool EndOverdue();
  void EndAll(FinishReason reason, const base::Status& status);
  void FailOperations(const base::Status& status);
  // By value, as MoveToWaiting: the request leaves the list that the caller may have it from.
  void Finish(LivePtr request, FinishReason reason, const base::Status& status);
  void SettleSequence(const LiveRequest& request, FinishReason reason);

  std::vector<BatchItem> PlanBatch();
  bool RunBatch();
  void Advance(const std::vector<BatchItem>& batch);
  void Emit(const LivePtr& request, std::span<const float> logits);
  void TrimIdle();

  void Admit();
  LivePtr NextWaiting() const;
  bool SuspendFor(const LiveRequest& request);
  bool TryAdmit(const LivePtr& request);
  void MoveToWaiting(LivePtr request);
  // Of the fairness key, now running.
  int64_t RunningOf(const std::string& key) const;
  // The youngest running chat request of the key with the most of them, if it has two at least.
  LivePtr YoungestOfCrowdedKey() const;

  bool MakeRoom(model::PageKind kind, int64_t pages, const LiveRequest* requester, PageUse use);
  bool EvictOldest();
  bool DropOneTail(const LiveRequest* requester, PageUse use);
  LivePtr RunningVictim(const LiveRequest* requester, PageUse use) const;
  void DropTail(LiveRequest& request);
  bool Reserve(const LivePtr& request, int64_t rows);

  void RunRestore(Sequence& sequence,
                  const std::vector<std::shared_ptr<const kv::KvSegment>>& parts,
                  const std::function<void(base::Status)>& done);
  base::Status AppendParts(Sequence& sequence,
                           const std::vector<std::shared_ptr<const kv::KvSegment>>& parts);
  base::StatusOr<std::shared_ptr<const MountableSegment>> RunMake(const base::Digest& key,
                                                                  const kv::KvSegment& segment);
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> RunCut(
      const Sequence& sequence, int64_t begin, int64_t end,
      const std::vector<kv::TurnRange>& turns) const;

  FairShare& share(const LiveRequest& request) {
    return request.chat() ? chat_share : background_share;
  }

  const Dependencies deps;
  const Options options;
  const std::shared_ptr<model::PagePool> pool;
  MountCache mounts;
  std::atomic<uint64_t> use_counter = 0;
  // Set when work arrives that a background step should be given up for.
  std::atomic<bool> work_waits = false;

  std::mutex mutex;
  std::condition_variable wake;  // work arrived, or stopping
  std::condition_variable idle;  // a request ended
  // Under `mutex`.
  std::vector<LivePtr> submitted;
  std::deque<Operation> operations;
  std::map<RequestId, LivePtr> live;
  std::map<std::string, int64_t> queued_of_key;  // submitted and never admitted
  int64_t queued = 0;
  RequestId next_id = 1;
  bool draining = false;
  bool stopping = false;
  Stats counters;

  std::mutex sequences_mutex;
  // Under `sequences_mutex`.
  std::vector<std::weak_ptr<Sequence>> sequences;
  size_t purge_at = 64;

  // The engine's thread.
  std::vector<LivePtr> waiting;  // by id
  std::vector<LivePtr> running;  // by id
  FairShare chat_share;
  FairShare background_share;
  Sampler sampler;
  std::vector<float> logits;

  std::mutex shutdown_mutex;
  std::thread thread;  // under `shutdown_mutex`
};

}  // namespace kvasir::runtime
