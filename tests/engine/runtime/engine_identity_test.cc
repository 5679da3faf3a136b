// Engine: a request's tokens and log-probabilities (fingerprints of its logits) are the same
// whatever else runs, however its prompt is cut, and wherever its state came from.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/runtime/harness.h"

namespace kvasir::runtime {
namespace {

constexpr int64_t kOutput = 24;

struct Outcome {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;
  std::string text;
  base::Digest context_id;
  bool operator==(const Outcome&) const = default;
};

Outcome OutcomeOf(const Job& job) {
  EXPECT_TRUE(job.out->finish.has_value());
  return {job.out->ids, job.out->logprobs, job.out->text, job.sequence->view().context_id};
}

// The request that all tests compare: 193 tokens of prompt, alone, in one chunk.
Outcome Alone() {
  Harness h({});
  const Job job = h.Submit(Ids(1, 193), kOutput, 5);
  h.RunAll();
  return OutcomeOf(job);
}

TEST(EngineIdentity, TheReferenceIsNoConstantText) {
  const Outcome alone = Alone();
  ASSERT_EQ(alone.ids.size(), static_cast<size_t>(kOutput));
  std::vector<int32_t> ids = alone.ids;
  std::sort(ids.begin(), ids.end());
  EXPECT_GT(std::unique(ids.begin(), ids.end()) - ids.begin(), 8);
  EXPECT_EQ(alone, Alone());
}

TEST(EngineIdentity, AloneAgainstEightOthersRunning) {
  Harness h({.step_rows_max = 100});
  std::vector<Job> others;
  for (uint64_t i = 0; i < 4; ++i) others.push_back(h.Submit(Ids(10 + i, 20 + 50 * i), 40, i));
  const Job job = h.Submit(Ids(1, 193), kOutput, 5);
  for (uint64_t i = 4; i < 8; ++i) others.push_back(h.Submit(Ids(10 + i, 20 + 50 * i), 40, i));
  h.RunAll();
  EXPECT_EQ(OutcomeOf(job), Alone());
  for (const Job& other : others) EXPECT_EQ(other.out->ids.size(), 40u);
}

TEST(EngineIdentity, ChunksOfOne63And64And65AndAll) {
  const Outcome alone = Alone();
  for (const int64_t chunk : {1, 63, 64, 65, 193}) {
    Harness h({.prefill_chunk = chunk});
    const Job job = h.Submit(Ids(1, 193), kOutput, 5);
    h.RunAll();
    EXPECT_EQ(OutcomeOf(job), alone) << "chunk " << chunk;
    EXPECT_EQ(h.engine().stats().rows, 193 + kOutput - 1);
  }
}

// An elder request grows from 60 tokens to 260; the pool has six pages. The younger one takes four
// when it is admitted and loses them when the elder comes to its third page, 69 steps after its
// first token.
void ExpectPreemptionChangesNothing(int64_t prefill_chunk, bool preempted_while_decoding) {
  Harness h({.kv_bytes = 6 * TailPageBytes(), .prefill_chunk = prefill_chunk});
  const Job elder = h.Submit(Ids(2, 60), 200, 6);
  while (elder.out->ids.empty()) h.engine().Step();
  const Job job = h.Submit(Ids(1, 193), kOutput, 5);
  while (h.engine().stats().preemptions == 0) ASSERT_TRUE(h.engine().Step());
  EXPECT_EQ(!job.out->ids.empty(), preempted_while_decoding);
  EXPECT_FALSE(job.out->finish.has_value());
  h.RunAll();
  EXPECT_EQ(elder.out->ids.size(), 200u);
  EXPECT_EQ(OutcomeOf(job), Alone());
  EXPECT_EQ(job.out->finish->computed_tokens, 193);
  EXPECT_GT(job.out->finish->recomputed_tokens, 0);
}

TEST(EngineIdentity, PreemptedWhileItsPromptRuns) { ExpectPreemptionChangesNothing(2, false); }

TEST(EngineIdentity, PreemptedWhileItDecodes) { ExpectPreemptionChangesNothing(3, true); }

TEST(EngineIdentity, ATurnAfterATurnEqualsOnePrompt) {
  const std::vector<int32_t> ids = Ids(1, 193);
  Harness h({});
  const auto sequence = h.NewSequence();
  const Job first = h.Submit(h.Request(sequence, {ids.begin(), ids.begin() + 70}, 0, 0));
  h.RunAll();
  EXPECT_EQ(first.out->finish->reason, FinishReason::kLength);
  EXPECT_EQ(first.out->finish->computed_tokens, 70);
  EXPECT_EQ(first.out->finish->output_tokens, 0);
  EXPECT_EQ(sequence->view().end, 70);
  const Job job = h.Submit(h.Request(sequence, {ids.begin() + 70, ids.end()}, kOutput, 5));
  h.RunAll();
  EXPECT_EQ(OutcomeOf(job), Alone());
  EXPECT_EQ(job.out->finish->computed_tokens, 123);
  EXPECT_EQ(sequence->view().end, 193 + kOutput - 1);  // the last token is not run
}

TEST(EngineIdentity, EvictedAndRestoredFromCutParts) {
  const std::vector<int32_t> ids = Ids(1, 193);
  Harness h({});
  const auto sequence = h.NewSequence();
  h.Submit(h.Request(sequence, {ids.begin(), ids.begin() + 130}, 0, 0));
  h.RunAll();
  const auto a = h.Cut(sequence, 0, 67);
  const auto b = h.Cut(sequence, 67, 130);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ((*a)->info().context_id, (*b)->info().parent_id);

  Harness other({});  // another engine, as after a restart
  const auto restored = other.NewSequence();
  ASSERT_TRUE(other.Restore(restored, {*a, *b}).ok());
  EXPECT_EQ(restored->view().end, 130);
  EXPECT_EQ(restored->view().context_id, (*b)->info().context_id);
  const Job job = other.Submit(other.Request(restored, {ids.begin() + 130, ids.end()}, kOutput, 5));
  other.RunAll();
  EXPECT_EQ(OutcomeOf(job), Alone());
  EXPECT_EQ(job.out->finish->computed_tokens, 63);
}

TEST(EngineIdentity, AMountAtItsOwnFrameEqualsComputingItsTokens) {
  const std::vector<int32_t> ids = Ids(1, 193);
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, {ids.begin(), ids.begin() + 150}, 0, 0));
  h.RunAll();
  const auto base = h.Cut(builder, 0, 20);
  const auto memory = h.Cut(builder, 20, 150);
  ASSERT_TRUE(base.ok() && memory.ok());
  const std::vector<SequenceMount> mounts = {{h.Mountable(*base), 0}, {h.Mountable(*memory), 20}};
  const auto sequence = h.engine().NewSequence(150, mounts);
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ((*sequence)->view().context_id, (*memory)->info().context_id);
  const Job job = h.Submit(h.Request(*sequence, {ids.begin() + 150, ids.end()}, kOutput, 5));
  h.RunAll();
  EXPECT_EQ(OutcomeOf(job), Alone());
  EXPECT_EQ(job.out->finish->computed_tokens, 43);
}

TEST(EngineIdentity, AMountAtAnotherFrameIsAnotherContext) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 150), 0, 0));
  h.RunAll();
  const auto memory = h.Cut(builder, 20, 150);
  ASSERT_TRUE(memory.ok());
  const auto at_64 = h.engine().NewSequence(200, {{h.Mountable(*memory), 64}});
  const auto at_20 = h.engine().NewSequence(200, {{h.Mountable(*memory), 20}});
  EXPECT_NE((*at_64)->view().context_id, (*memory)->info().context_id);
  EXPECT_NE((*at_20)->view().context_id, (*memory)->info().context_id);  // without what was before
  EXPECT_NE((*at_20)->view().context_id, (*at_64)->view().context_id);
}

TEST(EngineIdentity, AMountedSegmentIsNotChangedByGeneration) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(1, 150), 0, 0));
  h.RunAll();
  const auto segment = h.Cut(builder, 0, 150);
  ASSERT_TRUE(segment.ok());
  std::vector<Outcome> outcomes;
  for (int round = 0; round < 2; ++round) {
    const auto sequence = h.engine().NewSequence(150, {{h.Mountable(*segment), 0}});
    const Job job = h.Submit(h.Request(*sequence, Ids(3, 10), 50, 5));
    h.RunAll();
    outcomes.push_back(OutcomeOf(job));
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST(EngineIdentity, ABrokenStateHurtsItsOwnRequestOnly) {
  Harness h({});
  const auto builder = h.NewSequence();
  h.Submit(h.Request(builder, Ids(4, 64), 0, 0));
  h.RunAll();
  const auto good = h.Cut(builder, 0, 64);
  ASSERT_TRUE(good.ok());
  // The same state with one value that is NaN in half precision.
  std::vector<kv::HeadSlots> heads;
  for (size_t layer = 0; layer < (*good)->geometry().layers.size(); ++layer) {
    for (int head = 0; head < (*good)->geometry().layers[layer].kv_heads; ++head) {
      heads.push_back((*good)->head(static_cast<int>(layer), head));
    }
  }
  heads[0].values[1] = std::byte{0x7e};
  const auto bad = kv::KvSegment::Create((*good)->geometry(), (*good)->info(), std::move(heads));
  ASSERT_TRUE(bad.ok());
  const auto sequence = h.NewSequence();
  ASSERT_TRUE(h.Restore(sequence, {*bad}).ok());
  const Job broken = h.Submit(h.Request(sequence, Ids(5, 30), kOutput, 1));
  const Job job = h.Submit(Ids(1, 193), kOutput, 5);
  h.RunAll();
  EXPECT_EQ(broken.out->finish->reason, FinishReason::kError);
  EXPECT_EQ(broken.out->finish->status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(sequence->resident());
  EXPECT_EQ(OutcomeOf(job), Alone());
}

}  // namespace
}  // namespace kvasir::runtime
