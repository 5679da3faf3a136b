// A StateBuilder for tests: small valid exact states, the same for the same text.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/kv/state_builder.h"

namespace kvasir::service {

using SegmentPtr = std::shared_ptr<const kv::KvSegment>;

inline constexpr int64_t kBaseTokens = 8;

kv::ModelId TestModel(int version = 1);

// A conversation's own states: hands out the next parts of it, as the engine would.
class TestTail {
 public:
  explicit TestTail(int64_t first_position = kBaseTokens, kv::ModelId model = TestModel());
  // The next `tokens` tokens, of turn `turn`.
  SegmentPtr Next(int tokens, int64_t turn);
  // The part that was handed out last, with `more` tokens behind it.
  SegmentPtr Longer(int more, int64_t turn);
  int64_t position() const { return position_; }

 private:
  SegmentPtr Make(int64_t first, const std::vector<int32_t>& tokens, const base::Digest& parent,
                  int64_t turn);
  kv::ModelId model_;
  kv::ContextChain chain_;
  kv::ContextChain before_last_;
  int64_t position_, last_first_ = 0;
  std::vector<int32_t> last_;
};

class TestBuilder final : public kv::StateBuilder {
 public:
  kv::ModelId model_id() const override { return model; }
  kv::BuildId build_id() const override { return build; }
  int64_t base_tokens() const override { return kBaseTokens; }
  int64_t context_tokens_max() const override { return 4096; }
  // One token per byte of text.
  base::StatusOr<SegmentPtr> Build(const kv::BuilderSession& session,
                                   const std::atomic<bool>& cancelled) override;

  base::StatusOr<kv::StateCapture> Capture(const SegmentPtr&, std::span<const kv::CueText>,
                                           const std::atomic<bool>&) override {
    return base::Unimplemented("nothing is captured from these states");
  }

  kv::ModelId model = TestModel();
  kv::BuildId build = {"codec=1;path=test;kv=f16;compaction=none"};
  std::function<base::Status(const std::atomic<bool>& cancelled)> during_build;  // when set
  std::vector<kv::BuilderSession> built;
};

}  // namespace kvasir::service
