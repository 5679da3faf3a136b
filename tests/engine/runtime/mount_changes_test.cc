// Mounts that come and go along a sequence; goal: a token attends to what stood in force at its
// position, however often its state is dropped, cut, restored or computed again.
#include <gtest/gtest.h>

#include "tests/engine/runtime/harness.h"

namespace kvasir::runtime {
namespace {

constexpr int64_t kFirst = 200;  // where the tail begins
constexpr int64_t kReplyTokens = 12;

// A memory of 70 tokens, built at position 0.
std::shared_ptr<const kv::KvSegment> Memory(Harness& h, uint64_t seed) {
  const Job job = h.Submit(Ids(seed, 70), 0, 1);
  h.RunAll();
  return *h.Cut(job.sequence, 0, 70);
}

struct Scene {
  explicit Scene(const Engine::Options& options) : h(options) {
    a = {h.Mountable(Memory(h, 21)), 0};
    b = {h.Mountable(Memory(h, 22)), 90};
  }
  // The first turn behind `a`: 50 tokens and a reply.
  Job FirstTurn(std::shared_ptr<Sequence> sequence) {
    const Job job = h.Submit(h.Request(std::move(sequence), Ids(1, 50), kReplyTokens, 5));
    h.RunAll();
    return job;
  }
  // The second: 40 tokens and a reply.
  Job SecondTurn(std::shared_ptr<Sequence> sequence) {
    const Job job = h.Submit(h.Request(std::move(sequence), Ids(2, 40), kReplyTokens, 6));
    h.RunAll();
    return job;
  }
  Harness h;
  SequenceMount a, b;
};

// Two turns, `b` joins with the second.
struct Effect {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;
  base::Digest context_id;
  bool operator==(const Effect&) const = default;
};
Effect Of(const Job& job) {
  EXPECT_TRUE(job.out->finish && job.out->finish->status.ok());
  return {job.out->ids, job.out->logprobs, job.sequence->view().context_id};
}

Effect Live(Scene& s, std::shared_ptr<Sequence>* kept = nullptr) {
  const auto sequence = *s.h.engine().NewSequence(kFirst, {s.a});
  s.FirstTurn(sequence);
  EXPECT_TRUE(s.h.engine().SetMounts(sequence, {sequence->view().end, {s.a, s.b}}).ok());
  const Job job = s.SecondTurn(sequence);
  if (kept != nullptr) *kept = sequence;
  return Of(job);
}

TEST(MountChanges, AMountThatJoinsIsSeenFromThenOnOnly) {
  Scene s({});
  const auto without = *s.h.engine().NewSequence(kFirst, {s.a});
  const Effect first_without = Of(s.FirstTurn(without));
  const Effect second_without = Of(s.SecondTurn(without));
  const auto early = *s.h.engine().NewSequence(kFirst, {s.a, s.b});
  EXPECT_NE(Of(s.FirstTurn(early)), first_without);
  const Effect second_early = Of(s.SecondTurn(early));
  const Effect late = Live(s);
  EXPECT_NE(late.logprobs, second_without.logprobs);
  EXPECT_NE(late.logprobs, second_early.logprobs);
}

TEST(MountChanges, ComputingAgainInAnyChunksGivesTheSame) {
  Effect expected;
  for (const int64_t chunk : {256, 1, 63, 64, 65}) {
    Scene s({.prefill_chunk = chunk});
    std::shared_ptr<Sequence> live;
    const Effect outcome = Live(s, &live);
    if (chunk == 256) expected = outcome;
    EXPECT_EQ(outcome, expected) << "chunk " << chunk;
    const int64_t change = kFirst + 50 + kReplyTokens - 1;
    const auto again =
        *s.h.engine().NewSequenceWithChanges(kFirst, {{kFirst, {s.a}}, {change, {s.a, s.b}}});
    std::vector<int32_t> prompt = live->tokens();
    prompt.resize(static_cast<size_t>(change - kFirst) + 40);
    const Job job = s.h.Submit(s.h.Request(again, prompt, kReplyTokens, 6));
    s.h.RunAll();
    EXPECT_EQ(Of(job), expected) << "chunk " << chunk;
    EXPECT_EQ(job.out->finish->computed_tokens, static_cast<int64_t>(prompt.size()));
  }
}

TEST(MountChanges, StoredPartsOnBothSidesOfAChangeAreRestored) {
  Scene s({});
  std::shared_ptr<Sequence> live;
  const Effect expected = Live(s, &live);
  const int64_t change = kFirst + 50 + kReplyTokens - 1;
  const auto parts = {*s.h.Cut(live, kFirst, change), *s.h.Cut(live, change, change + 20)};
  const auto again =
      *s.h.engine().NewSequenceWithChanges(kFirst, {{kFirst, {s.a}}, {change, {s.a, s.b}}});
  ASSERT_TRUE(s.h.Restore(again, parts).ok());
  const std::vector<int32_t> all = live->tokens();
  const std::vector<int32_t> rest(all.begin() + (change - kFirst) + 20,
                                  all.begin() + (change - kFirst) + 40);
  const Job job = s.h.Submit(s.h.Request(again, rest, kReplyTokens, 6));
  s.h.RunAll();
  EXPECT_EQ(Of(job), expected);
  // Parts that saw a mount do not fit a sequence without it.
  const auto other = *s.h.engine().NewSequence(kFirst, {s.a});
  EXPECT_EQ(s.h.Restore(other, parts).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MountChanges, AMountCanBeHiddenForOneTurn) {
  Scene s({});
  const auto sequence = *s.h.engine().NewSequence(kFirst, {s.a, s.b});
  s.FirstTurn(sequence);
  ASSERT_TRUE(s.h.engine().SetMounts(sequence, {sequence->view().end, {s.a}}).ok());
  const Effect hidden = Of(s.SecondTurn(sequence));
  const auto seen = *s.h.engine().NewSequence(kFirst, {s.a, s.b});
  s.FirstTurn(seen);
  EXPECT_NE(Of(s.SecondTurn(seen)).logprobs, hidden.logprobs);
}

TEST(MountChanges, AChangeBehindTheEndIsReplacedAndOneInsideRefused) {
  Scene s({});
  const auto sequence = *s.h.engine().NewSequence(kFirst, {s.a});
  s.FirstTurn(sequence);
  const int64_t end = sequence->view().end;
  Engine& engine = s.h.engine();
  EXPECT_TRUE(engine.SetMounts(sequence, {end + 5, {s.a, s.b}}).ok());
  EXPECT_EQ(sequence->mounts().size(), 1u);
  EXPECT_TRUE(engine.SetMounts(sequence, {end, {s.a, s.b}}).ok());
  EXPECT_EQ(sequence->mounts().size(), 2u);
  EXPECT_EQ(engine.SetMounts(sequence, {end - 1, {s.a}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.SetMounts(sequence, {end, {s.b, s.a}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.NewSequenceWithChanges(kFirst, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine.NewSequenceWithChanges(kFirst, {{kFirst, {}}, {kFirst, {s.a}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvasir::runtime
