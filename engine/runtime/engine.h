// Engine: runs requests of many sequences on one model, in steps of a ragged batch that mixes
// chunks of prompts with single decoded tokens.
//
// A request's tokens depend only on its sequence's tokens and mounts, its prompt, its sampling
// parameters and positions: never on what else runs, on chunk sizes, on preemption, or on another
// request's fault.
//
// Scheduling: every running chat request that decodes has one row in every step; the rest of the
// step's rows goes to prompts, to the fairness key that was served least so far (virtual token
// counter, Sheng et al., OSDI 2024, "Fairness in Serving Large Language Models", section 4).
// Background requests run in steps of their own while no chat request waits or runs, in chunks of
// background_chunk; such a step is given up between two layers when a chat request arrives.
//
// Slots: when all requests_running_max are taken, a chat request takes that of background work, or,
// when none of its key runs, that of the youngest request of the key with most; that one waits and
// keeps its pages.
//
// Pages: a request is admitted when the pages for its whole prompt are there. When pages run out,
// idle sequences and unreferenced cached mounts go first (least recently used), then tails of
// requests that wait, then the youngest running request of the lowest priority is preempted: its
// tail is dropped and computed again from its token ids. The oldest running chat request is never
// preempted for another's growth, so there is always progress; a request that cannot go on
// although nothing else runs ends with ResourceExhausted.
//
// Threads: public methods may be called concurrently and do not block for a step, unless said
// otherwise. Callbacks run on the engine's thread (Start) or on the thread that calls Step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/kv/identity.h"
#include "engine/kv/segment.h"
#include "engine/model/model.h"
#include "engine/runtime/request.h"
#include "engine/runtime/sequence.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::runtime {

class Engine {
 public:
  struct Options {
    size_t kv_bytes = size_t{1} << 30;     // all pages: tails and mounts
    int64_t step_rows_max = 256;           // rows of one step; ≤ Model::Options::rows_max
    int64_t prefill_chunk = 256;           // rows of one prompt in one step
    int64_t background_chunk = 64;         // rows of a background step, step_rows_max at most
    int64_t requests_running_max = 16;     // ≤ step_rows_max and ≤ Model's logits_rows_max
    int64_t requests_queued_max = 256;     // waiting, all keys together
    int64_t requests_queued_key_max = 64;  // waiting, of one fairness key
    int64_t sequences_idle_max = 1024;     // resident and idle; the least recently used goes
    int64_t operations_max = 256;          // Restore, Mount and Cut not yet done
    int64_t output_tokens_max = 1 << 20;   // largest max_output_tokens
    size_t fairness_key_bytes_max = 1024;
  };
  // What the engine works with; all must outlive it.
  struct Dependencies {
    model::Model* model = nullptr;  // used on the engine's thread only
    const tokenizer::Tokenizer* tokenizer = nullptr;
    const base::Clock* clock = nullptr;
    kv::ModelId model_id;
    kv::BuildId build_id;  // recorded in segments that are cut
  };
  struct Stats {
    size_t kv_bytes_used = 0, kv_bytes_max = 0, mount_bytes_cached = 0;
    int64_t requests_queued = 0, requests_running = 0, sequences_idle = 0, operations_pending = 0;
    int64_t steps = 0, steps_yielded = 0;  // yielded: background steps given up for chat
    int64_t rows = 0, rows_last_step = 0;  // run through the model
    int64_t output_tokens = 0, preemptions = 0, evicted_sequences = 0, evicted_mounts = 0;
  };

  // Errors: InvalidArgument (an option out of its range; names it).
  static base::StatusOr<std::unique_ptr<Engine>> Create(const Dependencies& dependencies,
                                                        const Options& options);
  // Shutdown, then every sequence that is left is evicted. Mountable segments that are still held
  // keep the pages, not the model: REQUIRES: they go before the model does.
  ~Engine();

  // Runs steps on a thread of the engine's own from now on. REQUIRES: not called before, no Step.
  void Start();
  // Does pending operations and runs one step (tests, simulation); says whether there was anything
  // to do. Calls the callbacks. REQUIRES: not started; one thread.
  bool Step();

  // Positions of the longest context, mounts included.
  int64_t context_tokens_max() const;
  // What it runs. Others read what does not change: configuration, geometry, the RoPE table.
  const model::Model& model() const;
  const kv::ModelId& model_id() const;
  const kv::BuildId& build_id() const;

  // An empty sequence whose tail starts at `first_position`, behind `mounts`.
  // Errors: InvalidArgument (mounts overlap, are not ascending, or end after first_position;
  //         first_position outside [0, context_tokens_max())).
  base::StatusOr<std::shared_ptr<Sequence>> NewSequence(int64_t first_position,
                                                        std::vector<SequenceMount> mounts);
  // The same, where the mounts change along the tail: changes[0] holds from the first token on, the
  // others at the positions they name, which ascend. Errors: as NewSequence; InvalidArgument (no
  // change, too many, or not ascending).
  base::StatusOr<std::shared_ptr<Sequence>> NewSequenceWithChanges(
      int64_t first_position, std::vector<MountChange> changes);
  // Changes what an idle sequence attends to from position change.from ≥ its end on; a change made
  // before at that position or behind it is replaced.
  // Errors: InvalidArgument (mounts as in NewSequence; inside the tail), FailedPrecondition
  // (evicted,
  //         running), ResourceExhausted (kMountChangesMax).
  base::Status SetMounts(const std::shared_ptr<Sequence>& sequence, MountChange change);

  // Appends stored exact segments, which must continue the sequence's tail (position and context
  // chain), all or none, and calls `done`.
  // Errors: FailedPrecondition (evicted, running, or another context; reason MODEL_MISMATCH when
  //         made for another model), InvalidArgument (not exact, or another geometry),
  //         ResourceExhausted (no pages, or operations_max), Unavailable (shut down).
  void Restore(std::shared_ptr<Sequence> sequence,
               std::vector<std::shared_ptr<const kv::KvSegment>> parts,
               std::function<void(base::Status)> done);

  using MountDone = std::function<void(base::StatusOr<std::shared_ptr<const MountableSegment>>)>;
  // The cached segment of this name, or null. `key` is a digest of the content, chosen by the
  // caller (for a stored segment: its stored digest).
  std::shared_ptr<const MountableSegment> FindMountable(const base::Digest& key);
  // Decodes `segment` into pages, or takes the cached one; single flight per key; calls `done`.
  // Errors: as Restore, without those of the sequence.
  void MakeMountable(const base::Digest& key, std::shared_ptr<const kv::KvSegment> segment,
                     MountDone done);
  // Forgets a cached segment (erasure); sequences that have it mounted keep it.
  void ForgetMountable(const base::Digest& key);

  using CutDone = std::function<void(base::StatusOr<std::shared_ptr<const kv::KvSegment>>)>;
  // Copies tokens [begin, end) (logical positions) of the sequence's tail into a segment, between
  // two steps, and calls `done`. The engine fills in every part of SegmentInfo but `turns`, whose
  // token indices count from `begin`. The sequence may be running.
  // Errors: FailedPrecondition (evicted, or its pages are given up now), OutOfRange,
  //         InvalidArgument (turn ranges), ResourceExhausted (operations_max), Unavailable.
  void Cut(std::shared_ptr<Sequence> sequence, int64_t begin, int64_t end,
           std::vector<kv::TurnRange> turns, CutDone done);

  // Queues a request. The sink's OnFinish is called exactly once if and only if this returns OK,
  // possibly before it returns. At the end the tail holds everything but the last sampled token;
  // when the request was ended before its first output token it may hold a part of the prompt
  // (Sequence::view().end says how far), and after kError, or when its pages were given up at that
  // moment, the sequence is evicted.
  // Errors: InvalidArgument (prompt empty or a token out of range, max_output_tokens, sampling,
  //         stop, fairness_key, no sink; reason CONTEXT_LENGTH_EXCEEDED when mounts, tail, prompt
  //         and max_output_tokens together pass context_tokens_max()), FailedPrecondition (the
  //         sequence is evicted or has a request), ResourceExhausted (can never fit the pages;
  //         queue full), Unavailable (draining).
  base::StatusOr<RequestId> Submit(GenerateRequest request);
  // Ends a request within one step; unknown and finished ids are ignored.
  void Cancel(RequestId id);

  // Refuses new requests and operations; those accepted go on. Returns at once.
  void Drain();
  // Drain, then waits until no request is left or `clock` passes `deadline_us`, then ends the rest
  // with kCancelled and joins the thread. Blocks. Idempotent. Not from a callback.
  void Shutdown(int64_t deadline_us);

  Stats stats() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::runtime
