#include "engine/runtime/sequence.h"

#include <algorithm>
#include <limits>
#include <set>
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

void ExtendChain(kv::ContextChain& chain, const std::vector<SequenceMount>& before,
                 const std::vector<SequenceMount>& after) {
  static const base::Digest kNothing{};
  static const base::Digest kAll = base::Sha256(base::AsBytes("every slot is masked"));
  const auto add = [&](const SequenceMount& mount, const base::Digest& mask) {
    const auto& resident = *mount.segment->resident;
    chain.AddMount(resident.digest(), mount.begin - resident.first_local(), mount.begin,
                   mount.end(), mask);
  };
  const auto missing_in = [](const std::vector<SequenceMount>& mounts, const SequenceMount& mount) {
    return std::none_of(mounts.begin(), mounts.end(), [&](const SequenceMount& other) {
      return other.begin == mount.begin &&
             other.segment->resident->digest() == mount.segment->resident->digest();
    });
  };
  for (const SequenceMount& mount : before) {
    if (missing_in(after, mount)) add(mount, kAll);
  }
  for (const SequenceMount& mount : after) {
    if (missing_in(before, mount)) add(mount, kNothing);
  }
}

namespace {

std::vector<model::Mount> ModelMounts(const std::vector<SequenceMount>& mounts) {
  std::vector<model::Mount> result;
  for (const SequenceMount& mount : mounts) {
    result.push_back({mount.segment->resident, mount.begin});
  }
  return result;
}

}  // namespace

Sequence::Sequence(std::shared_ptr<model::PagePool> pool, const kv::ModelId& model_id,
                   int64_t first_position, std::vector<MountChange> changes)
    : pool_(std::move(pool)),
      first_position_(first_position),
      changes_(std::move(changes)),
      tail_(std::make_unique<model::Tail>(*pool_, first_position)) {
  kv::ContextChain chain(model_id);
  for (const SequenceMount& mount : changes_.front().mounts) ExtendChain(chain, mount);
  for (const MountChange& change : changes_) model_mounts_.push_back(ModelMounts(change.mounts));
  chain_.push_back(chain);
}

std::span<const model::Mount> Sequence::MountsAt(int64_t position) const {
  size_t i = changes_.size() - 1;
  while (i > 0 && changes_[i].from > position) --i;
  return model_mounts_[i];
}

int64_t Sequence::NextChange(int64_t position) const {
  for (size_t i = 1; i < changes_.size(); ++i) {
    if (changes_[i].from > position) return changes_[i].from;
  }
  return std::numeric_limits<int64_t>::max();
}

size_t Sequence::MountBytes() const {
  std::set<const model::ResidentSegment*> segments;
  size_t bytes = 0;
  for (const auto& mounts : model_mounts_) {
    for (const model::Mount& mount : mounts) {
      if (segments.insert(mount.segment.get()).second) bytes += mount.segment->bytes();
    }
  }
  return bytes;
}

void Sequence::SetMounts(MountChange change) {
  const std::lock_guard lock(mutex_);
  KVASIR_CHECK(change.from >= end());
  while (changes_.size() > 1 && changes_.back().from >= change.from) {
    changes_.pop_back();
    model_mounts_.pop_back();
  }
  model_mounts_.push_back(ModelMounts(change.mounts));
  changes_.push_back(std::move(change));
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
  if (changes_.empty()) return {};
  size_t i = changes_.size() - 1;
  while (i > 0 && changes_[i].from > end()) --i;
  return changes_[i].mounts;
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
  size_t change = 1;
  while (change < changes_.size() && changes_[change].from < end()) ++change;
  for (const int32_t token : tokens) {
    kv::ContextChain next = chain_.back();
    if (change < changes_.size() && changes_[change].from == end()) {
      ExtendChain(next, changes_[change - 1].mounts, changes_[change].mounts);
      ++change;
    }
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
  changes_ = {};
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
  const bool mounts = std::any_of(changes_.begin(), changes_.end(),
                                  [](const MountChange& change) { return !change.mounts.empty(); });
  if (tail_->pages() == 0 && !mounts) return std::nullopt;
  return last_use_;
}

}  // namespace kvasir::runtime
