// Identity: logit *bits* do not depend on batch, chunks, threads, pages or mounts
// (docs/architecture.md, invariant I6). Method: one sequence of 1303 + 197 tokens of SmolLM2 on the
// fast path, run in many ways; rows near every border compared. Goal: equality, no tolerance.
#include "engine/kv/identity.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "engine/base/rng.h"
#include "engine/kv/codec.h"
#include "tests/support/test_models.h"

namespace kvasir {
namespace {

using kernels::CpuPath;
using kernels::Precision;
using model::Mount;
using model::Tail;
using testing::TestModel;

constexpr int64_t kMounted = 1303;
constexpr int64_t kTokens = kMounted + 197;

// Ids that repeat for a seed; any ids do, attention is as real as with text.
std::vector<int32_t> Tokens(uint64_t seed, int64_t count, int64_t n_vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<int32_t>(base::UniformAt(seed, 0, i) * static_cast<double>(n_vocab)));
  }
  return tokens;
}

const std::vector<int64_t>& WantedRows() {
  static const std::vector<int64_t> rows = {0,   1,   62,   63,   64,   65,   255,  256, 257,
                                            511, 512, 1302, 1303, 1304, 1365, 1366, 1499};
  return rows;
}

std::vector<float> Whole(TestModel& m, const std::vector<int32_t>& tokens, int64_t chunk) {
  Tail tail(*m.pool, 0);
  return m.Run(tail, tokens, WantedRows(), {}, chunk);
}

// Bit equality of rows [first, end) of WantedRows; a NaN is never equal.
void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (const float x : a) ASSERT_FALSE(x != x) << "NaN in " << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

class Identity : public ::testing::TestWithParam<CpuPath> {
 protected:
  static void SetUpTestSuite() {
    for (const CpuPath path : kernels::AvailableCpuPaths()) {
      if (path == CpuPath::kGeneric) continue;
      models_.emplace(path, std::make_unique<TestModel>(testing::FetchedModel(testing::kSmolLm2),
                                                        path, Precision::kFast));
    }
  }
  static void TearDownTestSuite() { models_.clear(); }
  TestModel& m() { return *models_.at(GetParam()); }
  std::vector<int32_t> tokens() { return Tokens(7, kTokens, m().n_vocab()); }

  static std::map<CpuPath, std::unique_ptr<TestModel>> models_;
};
std::map<CpuPath, std::unique_ptr<TestModel>> Identity::models_;

std::vector<CpuPath> VectorPaths() {
  auto paths = kernels::AvailableCpuPaths();
  std::erase(paths, CpuPath::kGeneric);
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Paths, Identity, ::testing::ValuesIn(VectorPaths()),
                         [](const auto& path) { return std::string(kernels::Name(path.param)); });

TEST_P(Identity, ChunksOfAnySizeGiveTheSameBits) {
  const auto whole = Whole(m(), tokens(), 512);
  for (const int64_t chunk : {63, 64, 65, 257})
    ExpectSameBits(whole, Whole(m(), tokens(), chunk), "chunk");
}

TEST_P(Identity, TokenByTokenGivesTheSameBitsAsChunks) {
  auto prefix = tokens();
  prefix.resize(140);
  const std::vector<int64_t> rows = {0, 1, 62, 63, 64, 65, 127, 128, 139};
  Tail a(*m().pool, 0), b(*m().pool, 0);
  ExpectSameBits(m().Run(a, prefix, rows, {}, 512), m().Run(b, prefix, rows, {}, 1), "chunk of 1");
}

TEST_P(Identity, OneAndTwoAndThreeThreadsGiveTheSameBits) {
  const auto two = Whole(m(), tokens(), 512);
  for (const int threads : {1, 3}) {
    TestModel other(testing::FetchedModel(testing::kSmolLm2), GetParam(), Precision::kFast,
                    threads);
    ExpectSameBits(two, Whole(other, tokens(), 512), "threads");
  }
}

TEST_P(Identity, AloneAndBesideEightOthersGiveTheSameBits) {
  const auto mine = Tokens(7, 200, m().n_vocab());
  Tail alone(*m().pool, 0);
  std::vector<int64_t> rows(mine.size() - 40);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 40 + i;
  const auto expected = m().Run(alone, mine, rows);

  // Eight others of other lengths, in every step together with mine: first 40 tokens, then one a
  // step.
  std::vector<std::unique_ptr<Tail>> tails;
  std::vector<std::vector<int32_t>> texts;
  for (int i = 0; i < 9; ++i) {
    tails.push_back(std::make_unique<Tail>(*m().pool, i == 4 ? 0 : 17 * i));
    texts.push_back(i == 4 ? mine : Tokens(100 + i, 200 + 30 * i, m().n_vocab()));
    ASSERT_TRUE(tails.back()->Reserve(tails.back()->first_position() + 440).ok());
  }
  std::vector<float> got, logits(9 * m().n_vocab());
  for (size_t at = 0; at < mine.size(); at += at == 0 ? 40 : 1) {
    std::vector<model::SequenceStep> steps;
    for (int i = 0; i < 9; ++i) {
      const size_t count = at == 0 ? 40 : 1;
      steps.push_back({.tokens = std::span(texts[i]).subspan(at, count),
                       .tail = tails[i].get(),
                       .mounts = {},
                       .logits_rows = 1});
    }
    ASSERT_TRUE(m().model->Forward(steps, logits).ok());
    if (at >= 40)
      got.insert(got.end(), logits.begin() + 4 * m().n_vocab(), logits.begin() + 5 * m().n_vocab());
  }
  ExpectSameBits(expected, got, "beside eight others");
}

// Builds the state of the first kMounted tokens, by way of a segment, and runs the other 197 behind
// it as a mount.
std::vector<float> BehindMount(TestModel& m, const std::vector<int32_t>& tokens,
                               std::shared_ptr<const kv::KvSegment> segment,
                               const std::vector<int64_t>& rows, int64_t begin) {
  auto resident = model::ResidentSegment::Make(*m.model, *m.pool, *segment);
  EXPECT_TRUE(resident.ok()) << resident.status();
  const std::vector<Mount> mounts = {{.segment = *resident, .begin = begin}};
  Tail tail(*m.pool, mounts[0].end());
  return m.Run(tail, {tokens.begin() + kMounted, tokens.end()}, rows, mounts, 512);
}

std::shared_ptr<const kv::KvSegment> StateOfPrefix(TestModel& m,
                                                   const std::vector<int32_t>& tokens) {
  Tail tail(*m.pool, 0);
  m.Run(tail, {tokens.begin(), tokens.begin() + kMounted}, {});
  return tail.Cut(*m.model, 0, kMounted, {});
}

const std::vector<int64_t> kRowsBehind = {0, 1, 62, 63, 100, 196};

// Computed once for each model.
const std::vector<float>& RecomputedRowsBehind(TestModel& m, const std::vector<int32_t>& tokens) {
  static std::map<const TestModel*, std::vector<float>> known;
  std::vector<float>& logits = known[&m];
  if (logits.empty()) {
    std::vector<int64_t> rows;
    for (const int64_t row : kRowsBehind) rows.push_back(kMounted + row);
    Tail tail(*m.pool, 0);
    logits = m.Run(tail, tokens, rows);
  }
  return logits;
}

TEST_P(Identity, AnExactStateMountedAtItsOwnFrameGivesTheBitsOfRecomputing) {
  const auto segment = StateOfPrefix(m(), tokens());
  ExpectSameBits(RecomputedRowsBehind(m(), tokens()),
                 BehindMount(m(), tokens(), segment, kRowsBehind, 0), "mount");
}

TEST_P(Identity, TheSameHoldsAfterTheCodec) {
  base::SeededEntropy entropy(5);
  const kv::DataKey key{1, 2, 3};
  const auto encoded = kv::Encode(*StateOfPrefix(m(), tokens()), kv::SegmentId{9}, key, entropy);
  const auto decoded = kv::Decode(encoded, key);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectSameBits(RecomputedRowsBehind(m(), tokens()),
                 BehindMount(m(), tokens(), *decoded, kRowsBehind, 0), "codec");
}

TEST_P(Identity, TwoMountsSideBySideGiveTheBitsOfOne) {
  const auto segment = StateOfPrefix(m(), tokens());
  std::vector<Mount> mounts;
  for (const auto& [begin, end] : {std::pair{0, 700}, std::pair{700, static_cast<int>(kMounted)}}) {
    auto part = model::ResidentSegment::Make(*m().model, *m().pool,
                                             *kv::Slice(*segment, begin, end, {}, {}));
    ASSERT_TRUE(part.ok()) << part.status();
    mounts.push_back({.segment = *part, .begin = begin});
  }
  Tail tail(*m().pool, kMounted);
  const auto all = tokens();
  ExpectSameBits(RecomputedRowsBehind(m(), all),
                 m().Run(tail, {all.begin() + kMounted, all.end()}, kRowsBehind, mounts),
                 "two mounts");
}

TEST_P(Identity, ATailRestoredFromItsPartsGoesOnWithTheSameBits) {
  const auto segment = StateOfPrefix(m(), tokens());
  Tail tail(*m().pool, 0);
  for (int32_t begin = 0; begin < kMounted; begin += 256) {
    const int32_t end = std::min<int32_t>(begin + 256, kMounted);
    ASSERT_TRUE(tail.Append(*m().model, *kv::Slice(*segment, begin, end, {}, {})).ok());
  }
  const auto all = tokens();
  ExpectSameBits(RecomputedRowsBehind(m(), all),
                 m().Run(tail, {all.begin() + kMounted, all.end()}, kRowsBehind), "restored");
}

TEST_P(Identity, RollbackAndAnotherTryGiveTheSameBits) {
  const auto all = tokens();
  Tail tail(*m().pool, 0);
  m().Run(tail, {all.begin(), all.begin() + kMounted}, {});
  m().Run(tail, Tokens(99, 70, m().n_vocab()), {});
  tail.Truncate(kMounted);
  ExpectSameBits(RecomputedRowsBehind(m(), all),
                 m().Run(tail, {all.begin() + kMounted, all.end()}, kRowsBehind), "rollback");
}

TEST_P(Identity, GeneratingBehindAMountLeavesItsStateAsItWas) {
  const auto segment = StateOfPrefix(m(), tokens());
  const auto digest = segment->ContentDigest();
  BehindMount(m(), tokens(), segment, kRowsBehind, 0);
  EXPECT_EQ(segment->ContentDigest(), digest);
}

// At another frame the keys keep their rotation and the query turns instead: equal but for
// rounding. On the float path a rotation errs by 2^-24 relative, so a score of size s by about s *
// 2^-22 and the logits by no more than 1e-3 after 30 layers; on the integer path the same
// difference passes through rounding to int8 and could hide a real fault.
TEST_P(Identity, AMountAtAnotherFrameIsCloseToRecomputingThere) {
  constexpr int64_t kPrefix = 300, kShift = 37;
  TestModel exact(testing::FetchedModel(testing::kSmolLm2), GetParam(), Precision::kFloat);
  const auto all = Tokens(7, kPrefix + 40, exact.n_vocab());
  const std::vector<int32_t> prefix(all.begin(), all.begin() + kPrefix),
      rest(all.begin() + kPrefix, all.end());
  Tail built(*exact.pool, 0);
  exact.Run(built, prefix, {});
  const auto segment = built.Cut(*exact.model, 0, kPrefix, {});
  auto resident = model::ResidentSegment::Make(*exact.model, *exact.pool, *segment);
  ASSERT_TRUE(resident.ok()) << resident.status();
  Tail behind(*exact.pool, kShift + kPrefix), whole(*exact.pool, kShift);
  const auto shifted =
      exact.Run(behind, rest, {0, 20, 39}, {{.segment = *resident, .begin = kShift}});
  const auto recomputed = exact.Run(whole, all, {kPrefix, kPrefix + 20, kPrefix + 39});
  for (size_t i = 0; i < shifted.size(); ++i) ASSERT_NEAR(shifted[i], recomputed[i], 1e-3);
}

TEST_P(Identity, AStepGivenUpBetweenLayersLeavesTheTailAsItWas) {
  const auto all = tokens();
  Tail tail(*m().pool, 0);
  m().Run(tail, {all.begin(), all.begin() + kMounted}, {});
  ASSERT_TRUE(tail.Reserve(kTokens).ok());
  const model::SequenceStep step = {
      .tokens = std::span(all).subspan(kMounted), .tail = &tail, .mounts = {}, .logits_rows = 0};
  int layers = 0;
  const auto status = m().model->Forward({&step, 1}, {}, [&] { return ++layers < 5; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(tail.end(), kMounted);
  ExpectSameBits(RecomputedRowsBehind(m(), all),
                 m().Run(tail, {all.begin() + kMounted, all.end()}, kRowsBehind),
                 "after giving up");
}

}  // namespace
}  // namespace kvasir
