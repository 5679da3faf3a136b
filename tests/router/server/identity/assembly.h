// Assembly: model, engine, memory tier and chat turns as kvasird puts them together, without gRPC,
// and what the identity tests do with them, in this process and in one that is killed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memory/service/memory_tier.h"
#include "router/server/chat_turns.h"

namespace kvasir::server {

inline constexpr char kSession[] = "told";
inline constexpr int64_t kRowsMax = 256;  // of one step, also with logits

// Real time that runs, and a wall clock that stands: every process writes the same date line.
class StandingClock final : public base::Clock {
 public:
  int64_t WallMicros() const override { return int64_t{1'796'083'200} * 1'000'000; }
  int64_t MonotonicMicros() const override { return real_.MonotonicMicros(); }

 private:
  base::RealClock real_;
};

// The builder of the model, which notes the digest of what it built last.
class NotingBuilder final : public kv::StateBuilder {
 public:
  explicit NotingBuilder(kv::StateBuilder& builder) : builder_(builder) {}
  kv::ModelId model_id() const override { return builder_.model_id(); }
  kv::BuildId build_id() const override { return builder_.build_id(); }
  int64_t base_tokens() const override { return builder_.base_tokens(); }
  int64_t context_tokens_max() const override { return builder_.context_tokens_max(); }
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> Build(
      const kv::BuilderSession& session, const std::atomic<bool>& cancelled) override;
  base::StatusOr<kv::StateCapture> Capture(const std::shared_ptr<const kv::KvSegment>& state,
                                           std::span<const kv::CueText> cues,
                                           const std::atomic<bool>& cancelled) override {
    return builder_.Capture(state, cues, cancelled);
  }
  const base::Digest& last() const { return last_; }

 private:
  kv::StateBuilder& builder_;
  base::Digest last_;
};

// Whose sessions these are.
service::UserRef Ana();
// `count` ids that repeat for a seed; any ids do, attention is as real as with text.
std::vector<int32_t> RandomIds(uint64_t seed, int64_t count, int64_t n_vocab);

// A failure of anything it does ends the program.
class Assembly {
 public:
  Assembly(const std::string& model, const std::string& data);
  ~Assembly();

  ModelHost& host() { return *host_; }
  service::MemoryTier& tier() { return *tier_; }
  int64_t n_vocab() const { return host_->loaded().model->config().n_vocab; }

  // Makes session kSession with one turn, whose state has exactly `tokens` tokens behind the base,
  // closes it and builds its memory. Returns the digest of the content that was built.
  base::Digest StoreMemory(int64_t tokens);
  // The memory of session kSession.
  service::MemoryRecord Memory();

  // Begins a turn of session kSession, greedy and with logprobs.
  std::shared_ptr<LiveTurn> Begin(const std::string& message, int64_t max_output_tokens);
  // A whole turn, until its state is stored; the record of it.
  service::TurnRecord Say(const std::string& message, int64_t max_output_tokens);
  // What stands in the context of session kSession.
  SessionLayout Layout();

  // A stored segment in the engine's memory, at position `begin`.
  runtime::SequenceMount Mount(const std::shared_ptr<const kv::KvSegment>& segment, int64_t begin);
  // Runs `tokens` behind `tail` and returns the logits of the last `rows` ≤ kRowsMax of them,
  // [rows, n_vocab]. The engine runs nothing any more from the first call on.
  std::vector<float> Run(model::Tail& tail, std::span<const int32_t> tokens, int64_t rows,
                         const std::vector<model::Mount>& mounts);

 private:
  StandingClock clock_;
  base::SystemEntropy entropy_;
  Options options_;
  std::unique_ptr<ModelHost> host_;
  std::unique_ptr<NotingBuilder> builder_;
  LiveSessions sessions_{{}};
  std::unique_ptr<service::MemoryTier> tier_;
  std::unique_ptr<WorkPool> pool_;
  std::unique_ptr<ChatTurns> turns_;
};

}  // namespace kvasir::server
