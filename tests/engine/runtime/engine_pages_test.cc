// Engine: KV pages are bounded, come back, and never block progress.
#include <gtest/gtest.h>

#include "engine/base/rng.h"
#include "tests/engine/runtime/harness.h"

namespace kvasir::runtime {
namespace {

TEST(EnginePages, EverythingComesBackToTheBaseline) {
  Harness h({.kv_bytes = 24 * TailPageBytes(), .step_rows_max = 64, .requests_running_max = 4});
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 40; ++i) {
    const double u = base::UniformAt(1, 2, i);
    GenerateRequest request =
        h.Request(h.NewSequence(), Ids(i, 10 + static_cast<int64_t>(u * 300)), 30, i);
    request.fairness_key = std::to_string(i % 3);
    if (i % 5 == 0) request.priority = Priority::kBackground;
    jobs.push_back(h.Submit(request));
    if (i % 4 == 1) h.engine().Cancel(jobs[i].id);
    for (uint64_t step = 0; step < i % 7; ++step) h.engine().Step();
    if (i % 4 == 3) h.engine().Cancel(jobs[i / 2].id);
    EXPECT_LE(h.engine().stats().kv_bytes_used, 24 * TailPageBytes());
  }
  h.RunAll();
  for (const Job& job : jobs) {
    ASSERT_TRUE(job.out->finish.has_value());
    EXPECT_NE(job.out->finish->reason, FinishReason::kError) << job.out->finish->status;
  }
  jobs.clear();
  const Engine::Stats stats = h.engine().stats();
  EXPECT_EQ(stats.kv_bytes_used, 0u);
  EXPECT_EQ(stats.requests_queued, 0);
  EXPECT_EQ(stats.requests_running, 0);
  EXPECT_EQ(stats.sequences_idle, 0);
}

TEST(EnginePages, PagesReservedAndNotUsedGoBackAtTheEnd) {
  Harness h({.prefill_chunk = 64});
  const Job job = h.Submit(Ids(1, 250), 1, 1);
  h.engine().Step();
  EXPECT_EQ(h.engine().stats().kv_bytes_used, 4 * TailPageBytes());
  h.engine().Cancel(job.id);
  h.RunAll();
  EXPECT_EQ(job.sequence->view().end, 64);
  EXPECT_EQ(h.engine().stats().kv_bytes_used, TailPageBytes());
}

TEST(EnginePages, IdleSequencesAreEvictedLeastRecentlyUsedFirst) {
  Harness h({.kv_bytes = 4 * TailPageBytes()});
  const auto a = h.NewSequence(), b = h.NewSequence();
  h.Submit(h.Request(a, Ids(1, 64), 0, 1));
  h.RunAll();
  h.Submit(h.Request(b, Ids(2, 64), 0, 1));
  h.RunAll();
  h.Submit(h.Request(a, Ids(3, 10), 0, 1));  // a is now the younger
  h.RunAll();
  const Job job = h.Submit(Ids(4, 128), 0, 1);
  h.RunAll();
  EXPECT_EQ(job.out->finish->reason, FinishReason::kLength);
  EXPECT_FALSE(b->resident());
  EXPECT_TRUE(a->resident());
  EXPECT_TRUE(b->tokens().empty());
  EXPECT_EQ(h.engine().stats().evicted_sequences, 1);
  EXPECT_EQ(h.engine().Submit(h.Request(b, Ids(5, 5), 1, 1)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.Cut(b, 0, 10).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.Restore(b, {}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(EnginePages, AMountInUseStaysAndOneThatIsNotGoes) {
  Harness h({.kv_bytes = 6 * TailPageBytes()});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 128), 0, 1));
  h.RunAll();
  const auto first = h.Cut(builder, 0, 64), second = h.Cut(builder, 64, 128);
  ASSERT_TRUE(first.ok() && second.ok());
  auto sequence = h.engine().NewSequence(64, {{h.Mountable(*first), 0}});
  h.Mountable(*second);
  EXPECT_NE(h.engine().FindMountable((*second)->ContentDigest()), nullptr);
  const Job user = h.Submit(h.Request(*sequence, Ids(2, 30), 200, 1));
  h.engine().Step();
  const Job big = h.Submit(Ids(3, 200), 1, 1);
  h.RunAll();
  EXPECT_EQ(user.out->finish->reason, FinishReason::kLength);
  EXPECT_EQ(big.out->finish->reason, FinishReason::kLength);
  EXPECT_EQ(h.engine().FindMountable((*second)->ContentDigest()), nullptr);
  EXPECT_GE(h.engine().stats().evicted_mounts, 1);
}

TEST(EnginePages, OneSegmentIsDecodedOnceForAll) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 100), 0, 1));
  h.RunAll();
  const auto segment = h.Cut(builder, 0, 100);
  std::vector<std::shared_ptr<const MountableSegment>> made;
  for (int i = 0; i < 8; ++i) {
    h.engine().MakeMountable((*segment)->ContentDigest(), *segment,
                             [&](auto mountable) { made.push_back(*mountable); });
  }
  h.engine().Step();
  ASSERT_EQ(made.size(), 8u);
  for (const auto& mountable : made) EXPECT_EQ(mountable, made[0]);
  EXPECT_EQ(h.engine().stats().mount_bytes_cached, made[0]->resident->bytes());
  h.engine().ForgetMountable((*segment)->ContentDigest());
  EXPECT_EQ(h.engine().FindMountable((*segment)->ContentDigest()), nullptr);
}

TEST(EnginePages, ARequestThatCanNeverFitIsRefused) {
  Harness h({.kv_bytes = 4 * TailPageBytes()});
  const auto submit = [&](int64_t prompt, int64_t output) {
    return h.engine().Submit(h.Request(h.NewSequence(), Ids(1, prompt), output, 1)).status();
  };
  EXPECT_EQ(submit(257, 0).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(submit(200, 58).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(submit(200, 57).ok());  // the last token is not run: 256 rows
  h.RunAll();
}

TEST(EnginePages, PagesPinnedFromOutsideEndARequestWithAnError) {
  Harness h({.kv_bytes = 4 * TailPageBytes()});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 128), 0, 1));
  h.RunAll();
  const auto segment = h.Cut(builder, 0, 128);
  ASSERT_TRUE(segment.ok());
  auto pinned = h.Mountable(*segment);  // held by the test: cannot be evicted
  const Job job = h.Submit(Ids(2, 250), 4, 1);
  h.RunAll();
  EXPECT_EQ(job.out->finish->reason, FinishReason::kError);
  EXPECT_EQ(job.out->finish->status.code(), absl::StatusCode::kResourceExhausted);
  pinned = nullptr;
  const Job again = h.Submit(Ids(2, 250), 4, 1);
  h.RunAll();
  EXPECT_EQ(again.out->finish->reason, FinishReason::kLength);
}

TEST(EnginePages, ManyRequestsOnFewPagesAllEndWithTheirTokens) {
  std::vector<std::vector<int32_t>> alone;
  for (uint64_t i = 0; i < 6; ++i) {
    Harness h({});
    const Job job = h.Submit(Ids(i, 60), 120, i);
    h.RunAll();
    alone.push_back(job.out->ids);
  }
  Harness h({.kv_bytes = 5 * TailPageBytes()});
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 6; ++i) jobs.push_back(h.Submit(Ids(i, 60), 120, i));
  h.RunAll();
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(jobs[i].out->ids, alone[i]) << i;
  EXPECT_GT(h.engine().stats().preemptions, 0);
}

TEST(EnginePages, RowsRunAreAccountedFor) {
  Harness h({.kv_bytes = 5 * TailPageBytes()});
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 6; ++i) jobs.push_back(h.Submit(Ids(i, 60), 120, i));
  h.RunAll();
  int64_t rows = 0;
  for (const Job& job : jobs) {
    EXPECT_EQ(job.out->finish->computed_tokens, 60);
    rows += 60 + 119 + job.out->finish->recomputed_tokens;
  }
  EXPECT_EQ(h.engine().stats().rows, rows);
}

TEST(EnginePages, ChatTakesThePagesOfBackgroundWork) {
  Harness h({.kv_bytes = 4 * TailPageBytes(), .background_chunk = 64});
  GenerateRequest request = h.Request(h.NewSequence(), Ids(1, 250), 0, 1);
  request.priority = Priority::kBackground;
  const Job background = h.Submit(request);
  h.engine().Step();
  const Job chat = h.Submit(Ids(2, 100), 5, 1);
  h.Run(chat);
  EXPECT_EQ(chat.out->finish->reason, FinishReason::kLength);
  EXPECT_FALSE(background.out->finish.has_value());
  h.RunAll();
  EXPECT_EQ(background.out->finish->reason, FinishReason::kLength);
  EXPECT_EQ(background.out->finish->computed_tokens, 250);
  EXPECT_EQ(background.out->finish->recomputed_tokens, 64);
}

TEST(EnginePages, RestoreTakesAllPartsOrNone) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 100), 0, 1));
  h.RunAll();
  const auto a = h.Cut(builder, 0, 50), b = h.Cut(builder, 50, 100);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto sequence = h.NewSequence();
  EXPECT_EQ(h.Restore(sequence, {*b}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(h.Restore(sequence, {*a, *a}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sequence->view().end, 0);
  EXPECT_EQ(sequence->view().context_id, h.NewSequence()->view().context_id);
  EXPECT_TRUE(h.Restore(sequence, {*a, *b}).ok());
  EXPECT_EQ(sequence->tokens(), Ids(1, 100));
}

TEST(EnginePages, AStateOfAnotherModelIsAMismatch) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 10), 0, 1));
  h.RunAll();
  const auto good = h.Cut(builder, 0, 10);
  ASSERT_TRUE(good.ok());
  kv::SegmentInfo info = (*good)->info();
  info.model_id.digest.bytes[5] ^= 1;
  std::vector<kv::HeadSlots> heads;
  for (size_t layer = 0; layer < (*good)->geometry().layers.size(); ++layer) {
    for (int head = 0; head < (*good)->geometry().layers[layer].kv_heads; ++head) {
      heads.push_back((*good)->head(static_cast<int>(layer), head));
    }
  }
  const auto other = kv::KvSegment::Create((*good)->geometry(), info, heads);
  ASSERT_TRUE(other.ok());
  const base::Status status = h.Restore(h.NewSequence(), {*other});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::Reason(status), "MODEL_MISMATCH");
}

TEST(EnginePages, CutChecksItsRange) {
  Harness h({});
  const auto sequence = h.NewSequence();
  h.Submit(h.Request(sequence, Ids(1, 100), 0, 1));
  h.RunAll();
  EXPECT_EQ(h.Cut(sequence, 0, 101).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(h.Cut(sequence, -1, 10).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(h.Cut(sequence, 10, 10).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(h.Cut(sequence, 99, 100).ok());
}

TEST(EnginePages, IdleSequencesAreBounded) {
  Harness h({.sequences_idle_max = 3});
  std::vector<Job> jobs;
  for (uint64_t i = 0; i < 6; ++i) {
    jobs.push_back(h.Submit(Ids(i, 10), 0, 1));
    h.RunAll();
  }
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(jobs[i].sequence->resident(), i >= 3) << i;
}

}  // namespace
}  // namespace kvasir::runtime
