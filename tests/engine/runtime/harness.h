// Harness: the tiny model, loaded once, and engines on it that a test steps by hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/file.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/model/model.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/prompt.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::runtime {

// The tiny model and what belongs to it.
struct TinyRuntime {
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<base::ThreadPool> threads;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::optional<tokenizer::ChatTemplate> chat;
  std::optional<Prompt> prompt;
  kv::ModelId model_id;

  // Loaded at the first call, kept for the whole program.
  static TinyRuntime& Get();
};

// Keeps everything a request gives.
class Recorder : public Sink {
 public:
  base::Status OnToken(const OutputToken& token) override;
  void OnFinish(const Finish& finish) override;

  std::vector<int32_t> ids;
  std::vector<double> logprobs;  // of the chosen tokens: fingerprints of the logits
  std::string text;
  std::optional<Finish> finish;
  int64_t fail_at = -1;             // the token at which OnToken fails
  std::function<void()> on_token;   // called for every token, may be null
  std::function<void()> on_finish;  // called last, may be null
};

struct Job {
  std::shared_ptr<Sequence> sequence;
  std::shared_ptr<Recorder> out;
  RequestId id = 0;
};

class Harness {
 public:
  explicit Harness(const Engine::Options& options);

  Engine& engine() { return *engine_; }
  base::FakeClock& clock() { return clock_; }

  // A sequence at position 0. REQUIRES: works.
  std::shared_ptr<Sequence> NewSequence();
  // A request with ids, logprobs of each token recorded; temperature 0.9, seed as given.
  GenerateRequest Request(std::shared_ptr<Sequence> sequence, std::vector<int32_t> prompt,
                          int64_t max_output_tokens, uint64_t seed);
  Job Submit(GenerateRequest request);
  // On a new sequence.
  Job Submit(std::vector<int32_t> prompt, int64_t max_output_tokens, uint64_t seed);
  // Steps until there is nothing to do. Fails the test after 100,000 steps.
  void RunAll();
  // Steps until the job is finished.
  void Run(const Job& job);

  base::StatusOr<std::shared_ptr<const kv::KvSegment>> Cut(
      const std::shared_ptr<Sequence>& sequence, int64_t begin, int64_t end);
  base::Status Restore(const std::shared_ptr<Sequence>& sequence,
                       std::vector<std::shared_ptr<const kv::KvSegment>> parts);
  std::shared_ptr<const MountableSegment> Mountable(
      const std::shared_ptr<const kv::KvSegment>& segment);

 private:
  base::FakeClock clock_{1'000'000};
  std::unique_ptr<Engine> engine_;
};

// `count` tokens of printable ASCII bytes, different for every seed.
std::vector<int32_t> Ids(uint64_t seed, int64_t count);
// Pages of the pool that `tokens` from position 0 need.
inline int64_t Pages(int64_t tokens) { return (tokens + 63) / 64; }
// Bytes of a tail page of the tiny model.
size_t TailPageBytes();

}  // namespace kvasir::runtime
