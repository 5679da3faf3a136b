// Engine: who runs when: cancel, deadlines, fairness, background work, ends of requests, limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "tests/engine/runtime/harness.h"
#include "tests/support/tiny_model.h"

namespace kvasir::runtime {
namespace {

TEST(EngineSchedule, CancelTakesEffectWithinOneStep) {
  Harness h({});
  const Job job = h.Submit(Ids(1, 40), 100, 1);
  while (job.out->ids.size() < 5) h.engine().Step();
  h.engine().Cancel(job.id);
  h.engine().Step();
  ASSERT_TRUE(job.out->finish.has_value());
  EXPECT_EQ(job.out->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(job.out->ids.size(), 5u);
  EXPECT_EQ(job.sequence->view().end, 44);  // all but the last token given out
  EXPECT_FALSE(job.sequence->view().running);
  EXPECT_FALSE(h.engine().Step());
}

TEST(EngineSchedule, CancelFromACallbackGivesNoFurtherToken) {
  Harness h({});
  Job job = h.Submit(Ids(1, 40), 100, 1);
  job.out->on_token = [&] {
    if (job.out->ids.size() == 3) h.engine().Cancel(job.id);
  };
  h.RunAll();
  EXPECT_EQ(job.out->ids.size(), 3u);
  EXPECT_EQ(job.sequence->view().end, 42);
}

TEST(EngineSchedule, CancelInTheMiddleOfAStepHoldsForThatStep) {
  Harness h({});
  const Job first = h.Submit(Ids(1, 40), 100, 1);
  const Job second = h.Submit(Ids(2, 40), 100, 1);
  first.out->on_token = [&] {  // the second's token of this step is computed, but not yet given out
    if (first.out->ids.size() == 3) h.engine().Cancel(second.id);
  };
  while (first.out->ids.size() < 3) h.engine().Step();
  EXPECT_EQ(second.out->ids.size(), 2u);
  h.engine().Step();
  EXPECT_EQ(second.out->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(second.out->ids.size(), 2u);
  EXPECT_EQ(second.sequence->view().end, 41);
}

TEST(EngineSchedule, CancelWhileQueuedAndWhileThePromptRuns) {
  Harness h({.step_rows_max = 16, .prefill_chunk = 16, .requests_running_max = 1});
  const Job runs = h.Submit(Ids(1, 100), 10, 1);
  const Job queued = h.Submit(Ids(2, 100), 10, 1);
  h.engine().Step();
  h.engine().Cancel(queued.id);
  h.engine().Cancel(runs.id);
  h.engine().Step();
  EXPECT_EQ(queued.out->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(queued.out->finish->computed_tokens, 0);
  EXPECT_EQ(runs.out->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(runs.sequence->view().end, 16);  // what was run stays
  EXPECT_EQ(runs.out->finish->computed_tokens, 16);
}

TEST(EngineSchedule, DeadlinesHoldInTheQueueAndWhileRunning) {
  Harness h({.requests_running_max = 1});
  GenerateRequest first = h.Request(h.NewSequence(), Ids(1, 40), 1000, 1);
  first.deadline_us = h.clock().MonotonicMicros() + 2000;
  GenerateRequest second = h.Request(h.NewSequence(), Ids(2, 40), 10, 1);
  second.deadline_us = h.clock().MonotonicMicros() + 1000;
  const Job runs = h.Submit(first);
  const Job queued = h.Submit(second);
  for (int i = 0; i < 5; ++i) h.engine().Step();
  EXPECT_FALSE(queued.out->finish.has_value());
  h.clock().Advance(1000);
  h.engine().Step();
  ASSERT_TRUE(queued.out->finish.has_value());
  EXPECT_EQ(queued.out->finish->reason, FinishReason::kDeadline);
  EXPECT_EQ(queued.out->finish->queue_us, 1000);
  EXPECT_FALSE(runs.out->finish.has_value());
  h.clock().Advance(1000);
  h.engine().Step();
  EXPECT_EQ(runs.out->finish->reason, FinishReason::kDeadline);
  EXPECT_EQ(runs.out->finish->decode_us, 2000);
  EXPECT_FALSE(h.engine().Step());
}

TEST(EngineSchedule, AUserWithTenRequestsDoesNotStarveAnother) {
  Harness h({.step_rows_max = 32, .prefill_chunk = 32, .requests_running_max = 4});
  std::vector<Job> many;
  for (uint64_t i = 0; i < 10; ++i) {
    GenerateRequest request = h.Request(h.NewSequence(), Ids(i, 200), 200, i);
    request.fairness_key = "many";
    many.push_back(h.Submit(request));
  }
  for (int i = 0; i < 40; ++i) h.engine().Step();
  GenerateRequest request = h.Request(h.NewSequence(), Ids(99, 200), 20, 1);
  request.fairness_key = "one";
  const Job one = h.Submit(request);
  int64_t steps = 0;
  for (; !one.out->finish && steps < 1000; ++steps) h.engine().Step();
  // Alone it takes 7 steps of prompt and 19 of decoding. Behind four requests that decode it has 28
  // rows of each step at least: 8 steps of prompt at most, then a row in every step.
  EXPECT_LE(steps, 8 + 20);
  for (const Job& job : many) EXPECT_FALSE(job.out->finish.has_value());
  h.RunAll();
  for (const Job& job : many) EXPECT_EQ(job.out->ids.size(), 200u);
}

TEST(EngineSchedule, DecodesGoOnWhileALongPromptRuns) {
  Harness h({.step_rows_max = 32, .prefill_chunk = 32});
  const Job decodes = h.Submit(Ids(1, 20), 100, 1);
  while (decodes.out->ids.empty()) h.engine().Step();
  const Job prompt = h.Submit(Ids(2, 640), 1, 1);
  int64_t steps = 0;
  const size_t before = decodes.out->ids.size();
  for (; !prompt.out->finish; ++steps) h.engine().Step();
  EXPECT_EQ(decodes.out->ids.size() - before, static_cast<size_t>(steps));
  EXPECT_EQ(steps, (640 + 30) / 31);
}

TEST(EngineSchedule, BackgroundRunsOnlyWhenThereIsNoChat) {
  Harness h({.background_chunk = 16});
  GenerateRequest background = h.Request(h.NewSequence(), Ids(1, 100), 0, 1);
  background.priority = Priority::kBackground;
  const Job job = h.Submit(background);
  h.engine().Step();
  EXPECT_EQ(job.sequence->view().end, 16);
  const Job chat = h.Submit(Ids(2, 30), 10, 1);
  h.Run(chat);
  EXPECT_EQ(job.sequence->view().end, 16);
  h.RunAll();
  EXPECT_EQ(job.sequence->view().end, 100);
  EXPECT_EQ(job.out->finish->reason, FinishReason::kLength);
}

// A request whose end can be waited for while the engine runs on its own thread.
struct Awaited {
  Awaited(Harness& h, GenerateRequest request) {
    std::static_pointer_cast<Recorder>(request.sink)->on_finish = [this] { done.set_value(); };
    job = h.Submit(std::move(request));
  }
  void Wait() { done.get_future().wait(); }
  std::promise<void> done;
  Job job;
};

TEST(EngineSchedule, ABackgroundStepIsGivenUpWhenChatArrives) {
  Harness reference({});
  const Job alone = reference.Submit(Ids(2, 30), 10, 1);
  const Job state = reference.Submit(Ids(1, 600), 0, 1);
  reference.RunAll();
  const auto expected = reference.Cut(state.sequence, 0, 600);
  ASSERT_TRUE(expected.ok());

  // Chat arrives while a background step runs; whether it arrives between two layers of it is
  // chance, so this is repeated until it did.
  Harness h({.background_chunk = 256});
  h.engine().Start();
  for (int attempt = 0; h.engine().stats().steps_yielded == 0; ++attempt) {
    ASSERT_LT(attempt, 100) << "no background step was given up";
    GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 600), 0, 1);
    request.priority = Priority::kBackground;
    Awaited background(h, request);
    while (background.job.sequence->view().end == 0) std::this_thread::yield();
    Awaited chat(h, h.Request(h.NewSequence(), Ids(2, 30), 10, 1));
    chat.Wait();
    background.Wait();
    EXPECT_EQ(chat.job.out->ids, alone.out->ids);
    std::promise<base::Digest> digest;
    h.engine().Cut(background.job.sequence, 0, 600, {},
                   [&](auto segment) { digest.set_value((*segment)->ContentDigest()); });
    EXPECT_EQ(digest.get_future().get(), (*expected)->ContentDigest());
  }
  h.engine().Shutdown(INT64_MAX);
}

TEST(EngineSchedule, StopStringsEndTheReplyBeforeThem) {
  Harness h({});
  const Job free = h.Submit(Ids(1, 40), 60, 1);
  h.RunAll();
  ASSERT_GE(free.out->text.size(), 30u);
  // Three bytes of the text, which may lie in several tokens.
  const std::string stop = free.out->text.substr(20, 3);
  GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 40), 60, 1);
  request.stop = {stop};
  const Job job = h.Submit(request);
  h.RunAll();
  EXPECT_EQ(job.out->finish->reason, FinishReason::kStop);
  EXPECT_EQ(job.out->text, free.out->text.substr(0, free.out->text.find(stop)));
  EXPECT_LT(job.out->ids.size(), free.out->ids.size());
  EXPECT_TRUE(std::equal(job.out->ids.begin(), job.out->ids.end(), free.out->ids.begin()));
}

TEST(EngineSchedule, TextHeldBackForAStopStringIsGivenAtTheEnd) {
  Harness h({});
  const Job free = h.Submit(Ids(1, 40), 60, 1);
  h.RunAll();
  GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 40), 60, 1);
  request.stop = {free.out->text.substr(free.out->text.size() - 1) + std::string(3, '\x01')};
  const Job job = h.Submit(request);
  h.RunAll();
  EXPECT_EQ(job.out->finish->reason, FinishReason::kLength);
  EXPECT_EQ(job.out->text, free.out->text);
}

TEST(EngineSchedule, ATokenThatEndsTheGenerationStopsUnlessIgnored) {
  // Some seed of these ends by itself.
  for (uint64_t seed = 0;; ++seed) {
    ASSERT_LT(seed, 50u) << "no reply ended by itself";
    Harness h({});
    GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 40), 400, seed);
    request.ignore_eos = false;
    request.sampling.temperature = 1.5;
    const Job job = h.Submit(request);
    h.RunAll();
    if (job.out->finish->reason != FinishReason::kStop) continue;
    EXPECT_TRUE(TinyRuntime::Get().tokenizer->IsEndOfGeneration(job.out->ids.back()));
    EXPECT_EQ(job.out->text.find("<|im_end|>"), std::string::npos);
    request = h.Request(h.NewSequence(), Ids(1, 40), 400, seed);
    request.sampling.temperature = 1.5;
    const Job ignoring = h.Submit(request);
    h.RunAll();
    EXPECT_EQ(ignoring.out->finish->reason, FinishReason::kLength);
    EXPECT_EQ(ignoring.out->ids.size(), 400u);
    EXPECT_EQ(ignoring.out->text.find("<|im_end|>"), std::string::npos);
    return;
  }
}

TEST(EngineSchedule, ASinkThatFailsEndsItsOwnRequestOnly) {
  Harness h({});
  const Job reference = h.Submit(Ids(1, 40), 20, 1);
  h.RunAll();
  GenerateRequest request = h.Request(h.NewSequence(), Ids(2, 40), 20, 1);
  std::static_pointer_cast<Recorder>(request.sink)->fail_at = 3;
  const Job failing = h.Submit(request);
  const Job job = h.Submit(Ids(1, 40), 20, 1);
  h.RunAll();
  EXPECT_EQ(failing.out->finish->reason, FinishReason::kError);
  EXPECT_EQ(failing.out->finish->status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(failing.out->ids.size(), 3u);
  EXPECT_EQ(job.out->ids, reference.out->ids);
}

TEST(EngineSchedule, ARequestCanBeSubmittedFromOnFinish) {
  struct Chain : Recorder {
    Harness* h = nullptr;
    Job next;
    void OnFinish(const Finish& end) override {
      Recorder::OnFinish(end);
      next = h->Submit(h->Request(sequence, Ids(3, 5), 4, 1));
    }
    std::shared_ptr<Sequence> sequence;
  };
  Harness h({});
  GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 40), 4, 1);
  const auto chain = std::make_shared<Chain>();
  chain->h = &h;
  chain->sequence = request.sequence;
  request.sink = chain;
  ASSERT_TRUE(h.engine().Submit(request).ok());
  h.RunAll();
  EXPECT_EQ(chain->next.out->ids.size(), 4u);
}

TEST(EngineSchedule, RequestsThatCannotBeServedAreRefusedAtSubmit) {
  Harness h({.requests_queued_max = 3, .requests_queued_key_max = 2, .output_tokens_max = 1000});
  const auto submit = [&](auto change) {
    GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 10), 10, 1);
    change(request);
    return h.engine().Submit(request).status();
  };
  using R = GenerateRequest;
  const std::pair<std::function<void(R&)>, const char*> invalid[] = {
      {[](R& r) { r.prompt = {}; }, "prompt"},
      {[](R& r) { r.prompt = {-1}; }, "prompt"},
      {[](R& r) { r.prompt = {1'000'000}; }, "prompt"},
      {[](R& r) { r.max_output_tokens = -1; }, "max_output_tokens"},
      {[](R& r) { r.max_output_tokens = 1001; }, "max_output_tokens"},
      {[](R& r) { r.sampling.top_p = 2; }, "top_p"},
      {[](R& r) { r.stop = {""}; }, "stop"},
      {[](R& r) { r.fairness_key = std::string(2000, 'x'); }, "fairness_key"}};
  for (const auto& [change, field] : invalid) {
    const base::Status status = submit(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(base::Field(status), field);
  }
  const base::Status too_long = submit([](R& r) { r.prompt = Ids(1, 4090); });
  EXPECT_EQ(too_long.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::Reason(too_long), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_TRUE(submit([](R& r) { r.fairness_key = "a"; }).ok());
  EXPECT_TRUE(submit([](R& r) { r.fairness_key = "a"; }).ok());
  EXPECT_EQ(submit([](R& r) { r.fairness_key = "a"; }).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(submit([](R& r) { r.fairness_key = "b"; }).ok());
  EXPECT_EQ(submit([](R& r) { r.fairness_key = "c"; }).code(),
            absl::StatusCode::kResourceExhausted);
  h.RunAll();
  h.engine().Drain();
  EXPECT_EQ(submit([](R&) {}).code(), absl::StatusCode::kUnavailable);
}

TEST(EngineSchedule, ASequenceTakesOneRequestAtATime) {
  Harness h({});
  const auto sequence = h.NewSequence();
  const Job job = h.Submit(h.Request(sequence, Ids(1, 10), 10, 1));
  EXPECT_EQ(h.engine().Submit(h.Request(sequence, Ids(1, 10), 10, 1)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(sequence->view().running);
  h.RunAll();
  EXPECT_TRUE(h.engine().Submit(h.Request(sequence, Ids(1, 10), 10, 1)).ok());
  h.RunAll();
}

TEST(EngineSchedule, ShutdownEndsEveryRequestOnce) {
  std::vector<Job> jobs;
  base::Status cut;
  {
    Harness h({});
    for (uint64_t i = 0; i < 5; ++i) jobs.push_back(h.Submit(Ids(i, 40), 50, i));
    for (int i = 0; i < 4; ++i) h.engine().Step();
    h.engine().Cut(jobs[0].sequence, 0, 10, {}, [&](auto segment) { cut = segment.status(); });
    h.engine().Shutdown(0);
  }
  for (const Job& job : jobs) {
    ASSERT_TRUE(job.out->finish.has_value());
    EXPECT_EQ(job.out->finish->reason, FinishReason::kCancelled);
    EXPECT_EQ(job.out->finish->status.code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(job.sequence->resident());
  }
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
}

TEST(EngineSchedule, ThreadsMaySubmitAndCancelAtOnce) {
  Harness reference({});
  const Job alone = reference.Submit(Ids(7, 30), 10, 1);
  reference.RunAll();
  Harness h({.kv_bytes = 20 * TailPageBytes(), .requests_queued_key_max = 256});
  h.engine().Start();
  std::vector<std::thread> threads;
  std::vector<std::vector<Job>> kept(4);
  for (size_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const Job cancelled = h.Submit(Ids(t, 100), 50, 1);
        kept[t].push_back(h.Submit(Ids(7, 30), 10, 1));
        h.engine().Cancel(cancelled.id);
        h.engine().stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  h.engine().Shutdown(INT64_MAX);
  for (const auto& jobs : kept) {
    for (const Job& job : jobs) EXPECT_EQ(job.out->ids, alone.out->ids);
  }
}

}  // namespace
}  // namespace kvasir::runtime
