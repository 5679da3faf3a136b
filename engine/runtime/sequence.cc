#include "engine/runtime/sequence.h"

#include <utility>

#include "engine/base/check.h"

namespace kvasir::runtime {

void ExtendChain(kv::ContextChain& chain, const SequenceMount& mount) {
  const MountableSegment& segment = *mount.segment;
  const int64_t first_local = segment.resident->first_local();
  const int64_t frame = mount.begin - first_local;
  if (frame == 0 && chain.id() == segment.parent_id) {
    kv::ContextChain as_tokens = chain;
    as_tokens.AddTokens(first_local, segment.tokens);
    if (as_tokens.id() == segment.context_id) {
      chain = as_tokens;
      return;
    }
  }
  chain.AddMount(segment.resident->digest(), frame, mount.begin, mount.end(), base::Digest{});
}

Sequence::Sequence(std::shared_ptr<model::PagePool> pool, const kv::ModelId& model_id,
                   int64_t first_position, std::vector<SequenceMount> mounts)
    : pool_(std::move(pool)),
      first_position_(first_position),
      mounts_(std::move(mounts)),
      tail_(std::make_unique<model::Tail>(*pool_, first_position)) {
  kv::ContextChain chain(model_id);
  for (const SequenceMount& mount : mounts_) {
    ExtendChain(chain, mount);
    model_mounts_.push_back({mount.segment->resident, mount.begin});
  }
  chain_.push_back(chain);
}

Sequence::View Sequence::view() const {
  const std::lock_guard lock(mutex_);
  return {.resident = tail_ != nullptr,
          .running = running_,
          .first_position = first_position_,
          .end = end(),
          .context_id = chain_.back().id()};
}

std::vector<int32_t> Sequence::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

std::vector<SequenceMount> Sequence::mounts() const {
  const std::lock_guard lock(mutex_);
  return mounts_;
}

base::Status Sequence::Claim() {
  const std::lock_guard lock(mutex_);
  if (tail_ == nullptr) return base::FailedPrecondition("the sequence was evicted");
  if (running_) return base::FailedPrecondition("the sequence has a request that is not finished");
  running_ = true;
  return base::OkStatus();
}

void Sequence::Release(uint64_t use) {
  const std::lock_guard lock(mutex_);
  running_ = false;
  last_use_ = use;
}

void Sequence::AddTokens(std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  for (const int32_t token : tokens) {
    kv::ContextChain next = chain_.back();
    next.AddTokens(end(), {&token, 1});
    chain_.push_back(next);
    tokens_.push_back(token);
  }
  KVASIR_CHECK(tail_->end() == end());
}

void Sequence::Truncate(int64_t new_end) {
  const std::lock_guard lock(mutex_);
  KVASIR_CHECK(new_end >= first_position_ && new_end <= end());
  tokens_.resize(static_cast<size_t>(new_end - first_position_));
  while (chain_.size() > tokens_.size() + 1) chain_.pop_back();
  tail_->Truncate(new_end);
}

void Sequence::EvictLocked() {
  tail_.reset();
  tokens_ = {};
  mounts_ = {};
  model_mounts_ = {};
  while (chain_.size() > 1) chain_.pop_back();
}

void Sequence::Evict() {
  const std::lock_guard lock(mutex_);
  EvictLocked();
}

bool Sequence::EvictIfIdle() {
  const std::lock_guard lock(mutex_);
  if (running_ || tail_ == nullptr) return false;
  EvictLocked();
  return true;
}

std::optional<uint64_t> Sequence::EvictableSince() const {
  const std::lock_guard lock(mutex_);
  if (running_ || tail_ == nullptr) return std::nullopt;
  if (tail_->pages() == 0 && mounts_.empty()) return std::nullopt;
  return last_use_;
}

}  // namespace kvasir::runtime
