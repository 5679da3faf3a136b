#include "tests/engine/runtime/harness.h"

#include <gtest/gtest.h>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "tests/support/tiny_model.h"

namespace kvasir::runtime {
namespace {

template <typename T>
T Take(base::StatusOr<T> value) {
  if (!value.ok()) ADD_FAILURE() << value.status();
  KVASIR_CHECK(value.ok());
  return *std::move(value);
}

std::unique_ptr<TinyRuntime> Load() {
  static const testing::TinyModelFile file({.seed = 1, .layers = 2});
  auto runtime = std::make_unique<TinyRuntime>();
  runtime->file = Take(gguf::File::Open(file.path()));
  runtime->threads = std::make_unique<base::ThreadPool>(1);
  runtime->backend = Take(kernels::MakeCpuBackend(kernels::AvailableCpuPaths().back(),
                                                  kernels::Precision::kFast, *runtime->threads));
  runtime->model = Take(model::Model::Load(*runtime->file, *runtime->backend, {}, nullptr));
  runtime->tokenizer = Take(tokenizer::Tokenizer::Create(*runtime->file));
  runtime->chat = Take(tokenizer::ChatTemplate::Create(*runtime->file, runtime->tokenizer.get()));
  runtime->prompt = Take(Prompt::Create(runtime->tokenizer.get(), &*runtime->chat));
  runtime->model_id = kv::MakeModelId(model::WeightsDigest(*runtime->file),
                                      runtime->tokenizer->digest(), runtime->model->geometry());
  return runtime;
}

}  // namespace

TinyRuntime& TinyRuntime::Get() {
  static const std::unique_ptr<TinyRuntime> runtime = Load();
  return *runtime;
}

base::Status Recorder::OnToken(const OutputToken& token) {
  EXPECT_FALSE(finish.has_value()) << "a token after OnFinish";
  if (fail_at == static_cast<int64_t>(ids.size())) return base::Aborted("the sink fails");
  ids.push_back(token.id);
  logprobs.push_back(token.logprob);
  text += token.text;
  if (on_token) on_token();
  return base::OkStatus();
}

void Recorder::OnFinish(const Finish& end) {
  EXPECT_FALSE(finish.has_value()) << "OnFinish twice";
  finish = end;
  if (on_finish) on_finish();
}

Harness::Harness(const Engine::Options& options) {
  TinyRuntime& tiny = TinyRuntime::Get();
  engine_ = Take(Engine::Create({.model = tiny.model.get(),
                                 .tokenizer = tiny.tokenizer.get(),
                                 .clock = &clock_,
                                 .model_id = tiny.model_id,
                                 .build_id = {"test"}},
                                options));
}

std::shared_ptr<Sequence> Harness::NewSequence() { return Take(engine_->NewSequence(0, {})); }

GenerateRequest Harness::Request(std::shared_ptr<Sequence> sequence, std::vector<int32_t> prompt,
                                 int64_t max_output_tokens, uint64_t seed) {
  GenerateRequest request;
  request.sequence = std::move(sequence);
  request.prompt = std::move(prompt);
  request.max_output_tokens = max_output_tokens;
  request.sampling = {.temperature = 0.9, .seed = seed, .logprobs = 1};
  request.ignore_eos = true;
  request.sink = std::make_shared<Recorder>();
  return request;
}

Job Harness::Submit(GenerateRequest request) {
  Job job;
  job.sequence = request.sequence;
  job.out = std::static_pointer_cast<Recorder>(request.sink);
  job.id = Take(engine_->Submit(std::move(request)));
  return job;
}

Job Harness::Submit(std::vector<int32_t> prompt, int64_t max_output_tokens, uint64_t seed) {
  return Submit(Request(NewSequence(), std::move(prompt), max_output_tokens, seed));
}

void Harness::RunAll() {
  for (int step = 0; step < 100'000; ++step) {
    if (!engine_->Step()) return;
  }
  ADD_FAILURE() << "100,000 steps and no end";
}

void Harness::Run(const Job& job) {
  for (int step = 0; step < 100'000 && !job.out->finish; ++step) engine_->Step();
  EXPECT_TRUE(job.out->finish.has_value());
}

base::StatusOr<std::shared_ptr<const kv::KvSegment>> Harness::Cut(
    const std::shared_ptr<Sequence>& sequence, int64_t begin, int64_t end) {
  base::StatusOr<std::shared_ptr<const kv::KvSegment>> result = base::Internal("Cut: no answer");
  engine_->Cut(sequence, begin, end, {}, [&](auto segment) { result = std::move(segment); });
  engine_->Step();
  return result;
}

base::Status Harness::Restore(const std::shared_ptr<Sequence>& sequence,
                              std::vector<std::shared_ptr<const kv::KvSegment>> parts) {
  base::Status result = base::Internal("Restore: no answer");
  engine_->Restore(sequence, std::move(parts), [&](base::Status s) { result = std::move(s); });
  engine_->Step();
  return result;
}

std::shared_ptr<const MountableSegment> Harness::Mountable(
    const std::shared_ptr<const kv::KvSegment>& segment) {
  std::shared_ptr<const MountableSegment> result;
  engine_->MakeMountable(segment->ContentDigest(), segment,
                         [&](auto made) { result = Take(std::move(made)); });
  engine_->Step();
  return result;
}

std::vector<int32_t> Ids(uint64_t seed, int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const double u = base::UniformAt(seed, 99, static_cast<uint64_t>(i));
    ids.push_back(testing::TinyByteToken(static_cast<uint8_t>(32 + static_cast<int>(u * 95))));
  }
  return ids;
}

size_t TailPageBytes() { return TinyRuntime::Get().model->layout().tail_bytes(); }

}  // namespace kvasir::runtime
