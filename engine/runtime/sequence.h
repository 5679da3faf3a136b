// Sequence: the live attention state of one conversation: mounts, then a tail that grows, and the
// context chain over both. It outlives a turn: its owner keeps it and submits the next turn to it.
//
// The engine may *evict* an idle sequence when pages run short. An evicted sequence stays evicted:
// its owner makes a new one and restores it from stored parts, or computes it again. Dropping the
// last reference frees its pages.
//
// Threads: the public methods may be called concurrently; everything else is the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/kv/identity.h"
#include "engine/model/page_pool.h"
#include "engine/model/resident_segment.h"
#include "engine/model/tail.h"

namespace kvasir::runtime {

// A segment in the engine's memory, ready to be mounted, with what the context chain needs of it.
struct MountableSegment {
  std::shared_ptr<model::PagePool> pool;  // declared first: outlives `resident`
  std::shared_ptr<const model::ResidentSegment> resident;
  std::vector<int32_t> tokens;
  base::Digest parent_id;   // of the stored segment
  base::Digest context_id;  // of the stored segment
};

// A mountable segment and the logical position of its first token.
struct SequenceMount {
  std::shared_ptr<const MountableSegment> segment;
  int64_t begin = 0;
  int64_t end() const { return begin + segment->resident->logical_tokens(); }
};

// From logical position `from` on tokens attend to `mounts`, in order of position; those before
// keep what they attended to. Mounts can come and go in this way, for the tokens of one turn too.
struct MountChange {
  int64_t from = 0;
  std::vector<SequenceMount> mounts;
};
inline constexpr size_t kMountChangesMax = 8192;  // of one sequence

// The chain after a mount. A segment that stands where it was built (frame 0 behind its own parent)
// counts as its tokens, because attending to it gives the same bytes as computing them.
void ExtendChain(kv::ContextChain& chain, const SequenceMount& mount);
// The chain where the mounts change in front of a token: what goes counts as wholly masked, what
// comes as a mount.
void ExtendChain(kv::ContextChain& chain, const std::vector<SequenceMount>& before,
                 const std::vector<SequenceMount>& after);

class Sequence {
 public:
  // What an owner may ask at any time; while `running` it changes from step to step.
  struct View {
    bool resident = false;       // false: evicted, for good
    bool running = false;        // a request is queued or runs
    int64_t first_position = 0;  // of the tail
    int64_t end = 0;             // of the tail
    base::Digest context_id;     // chain after the tail's last token
  };
  View view() const;
  bool resident() const { return view().resident; }
  // Ids of the tokens in the tail, in order; empty when evicted. Copies.
  std::vector<int32_t> tokens() const;
  // What the last token of the tail or the next one attends to, in order of position; empty when
  // evicted. Copies.
  std::vector<SequenceMount> mounts() const;

 private:
  friend class Engine;

  Sequence(std::shared_ptr<model::PagePool> pool, const kv::ModelId& model_id,
           int64_t first_position, std::vector<MountChange> changes);

  // The rest is called on the engine's thread only, unless said otherwise.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t end() const { return first_position_ + size(); }
  const base::Digest& ContextAt(int64_t position) const {
    return chain_[static_cast<size_t>(position - first_position_)].id();
  }
  // What the token at `position` attends to. REQUIRES: not evicted.
  std::span<const model::Mount> MountsAt(int64_t position) const;
  // The first position behind `position` whose token attends to other mounts, or INT64_MAX.
  int64_t NextChange(int64_t position) const;
  // Bytes of all segments it ever attends to, each once.
  size_t MountBytes() const;
  // REQUIRES: claimed, from ≥ end().
  void SetMounts(MountChange change);
  // Any thread. Marks the sequence as running. Errors: FailedPrecondition (evicted, running).
  base::Status Claim();
  // Any thread.
  void Release(uint64_t use);
  // Records tokens that the tail has already.
  void AddTokens(std::span<const int32_t> tokens);
  // Forgets the tokens from `end` on; pages reserved behind it go too.
  void Truncate(int64_t end);
  // An evicted sequence has no tail, tokens and mounts.
  void Evict();
  void EvictLocked();
  bool EvictIfIdle();
  // Any thread. When it was used last, if it is idle and holds pages or mounts.
  std::optional<uint64_t> EvictableSince() const;

  const std::shared_ptr<model::PagePool> pool_;
  const int64_t first_position_;
  mutable std::mutex mutex_;
  bool running_ = false;
  std::vector<MountChange> changes_;                     // ascending; [0].from ≤ first_position_
  std::vector<std::vector<model::Mount>> model_mounts_;  // the same, as the model takes them
  std::vector<int32_t> tokens_;                          // of the tail
  // [tokens_ + 1] after the first mounts and after each token; a change at a position belongs to
  // the token that stands there.
  std::vector<kv::ContextChain> chain_;
  std::unique_ptr<model::Tail> tail_;  // null: evicted
  uint64_t last_use_ = 0;              // the engine's use counter
};

}  // namespace kvasir::runtime
