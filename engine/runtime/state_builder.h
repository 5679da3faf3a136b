// RuntimeStateBuilder: states from text, computed by the engine as requests without output.
//
// Threads: concurrent calls allowed; Build blocks its caller, never the engine's thread (do not
// call it from a callback).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/kv/state_builder.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/prompt.h"

namespace kvasir::runtime {

class RuntimeStateBuilder final : public kv::StateBuilder {
 public:
  // Both must outlive it. The engine must be started, or stepped by another thread.
  RuntimeStateBuilder(Engine& engine, const Prompt& prompt);
  ~RuntimeStateBuilder() override;

  kv::ModelId model_id() const override;
  kv::BuildId build_id() const override;
  int64_t base_tokens() const override;
  int64_t context_tokens_max() const override;
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> Build(
      const kv::BuilderSession& session, const std::atomic<bool>& cancelled) override;

  base::StatusOr<kv::StateCapture> Capture(const std::shared_ptr<const kv::KvSegment>& state,
                                           std::span<const kv::CueText> cues,
                                           const std::atomic<bool>& cancelled) override;

  // The state of the canonical base alone, at positions [0, base_tokens()): computed once, then
  // kept. A session without memories is restored from it, one with memories mounts it at 0.
  // Errors: those of Build.
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> Base(const std::atomic<bool>& cancelled);

  // Ids of `session` behind the base, as Build runs them, and the turns' ranges among them.
  std::vector<int32_t> Render(const kv::BuilderSession& session,
                              std::vector<kv::TurnRange>& turns) const;

 private:
  using Parts = std::vector<std::shared_ptr<const kv::KvSegment>>;
  // As what the engine runs a build.
  struct Share {
    Priority priority = Priority::kBackground;
    std::string fairness_key = {};
  };
  // The state of `ids` behind `before`, which stands at position 0.
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> BuildBehind(
      const Parts& before, const std::vector<int32_t>& ids, const std::vector<kv::TurnRange>& turns,
      const Share& share, const std::atomic<bool>& cancelled);
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> Attempt(
      const Parts& before, const std::vector<int32_t>& ids, const std::vector<kv::TurnRange>& turns,
      const Share& share, const std::atomic<bool>& cancelled);
  base::Status Prefill(const std::shared_ptr<Sequence>& sequence, std::vector<int32_t> prompt,
                       const Share& share, const std::atomic<bool>& cancelled);

  using Mountable = std::shared_ptr<const MountableSegment>;
  base::StatusOr<Mountable> MakeMountable(const std::shared_ptr<const kv::KvSegment>& segment);
  // Runs `cues` (their tokens) behind `mounts`, a few at a time, and fills `capture`.
  base::Status RunCues(const std::vector<SequenceMount>& mounts,
                       const std::vector<std::vector<int32_t>>& cues,
                       const std::atomic<bool>& cancelled, kv::StateCapture* capture);

  Engine& engine_;
  const Prompt& prompt_;
  std::mutex mutex_;
  std::shared_ptr<const kv::KvSegment> base_;  // under `mutex_`; null until computed
};

}  // namespace kvasir::runtime
