// Method: small states and captures made from a seed. Goal: budgets are global and exact, what is
// kept is the state's own (keys, positions), results repeat whatever the threads, and a capture of
// another state is refused.
#include "compaction/compact_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/base/rng.h"
#include "tests/engine/kv/test_segments.h"

namespace kvasir::compaction {
namespace {

const std::atomic<bool> kGoOn = false;

// Values uniform in ±1; keys are whatever bytes.
std::shared_ptr<const kv::KvSegment> State(int tokens) {
  const kv::TestShape shape = {.layers = 3,
                               .kv_heads = 2,
                               .k_width = 8,
                               .v_width = 6,
                               .tokens = tokens,
                               .turns = {{1, 0, tokens / 2}, {2, tokens / 2, tokens}}};
  std::vector<kv::HeadSlots> heads = kv::ExactHeads(shape);
  uint64_t drawn = 0;
  for (kv::HeadSlots& head : heads) {
    for (size_t i = 0; i < head.values.size(); i += 2) {
      const auto half = Eigen::half(static_cast<float>(2 * base::UniformAt(5, 0, drawn++) - 1));
      std::memcpy(head.values.data() + i, &half, 2);
    }
  }
  return *kv::KvSegment::Create(kv::TestGeometry(shape), kv::TestInfo(shape), std::move(heads));
}

// Queries and keys uniform in ±2; the state gets all of a query's attention.
kv::StateCapture CaptureOf(const kv::KvSegment& state, int64_t rows) {
  uint64_t drawn = 0;
  const auto fill = [&](std::vector<float>& out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out.push_back(static_cast<float>(4 * base::UniformAt(7, 1, drawn++) - 2));
    }
  };
  kv::StateCapture capture{.rows = rows,
                           .slots = state.logical_tokens(),
                           .q_heads = 4,
                           .scale = 0.35,
                           .cue_first_row = {0},
                           .layers = {}};
  for (const kv::Stream& stream : state.geometry().layers) {
    kv::LayerCapture& layer = capture.layers.emplace_back();
    layer.keys.resize(static_cast<size_t>(stream.kv_heads));
    for (auto& keys : layer.keys) fill(keys, capture.slots * stream.k_width);
    fill(layer.queries, rows * capture.q_heads * stream.k_width);
    layer.log_sum_exp.assign(static_cast<size_t>(rows * capture.q_heads), 12.0F);
  }
  return capture;
}

int64_t Slots(const kv::KvSegment& segment) {
  int64_t sum = 0;
  for (int layer = 0; layer < 3; ++layer) {
    for (int head = 0; head < 2; ++head) sum += segment.head(layer, head).slots;
  }
  return sum;
}

std::vector<CompactedState> Compact(const kv::KvSegment& state, std::vector<double> ratios,
                                    int threads = 1) {
  base::ThreadPool pool(threads);
  auto results = CompactStates(state, CaptureOf(state, 60), ratios, {}, pool, kGoOn);
  EXPECT_TRUE(results.ok()) << results.status();
  return *std::move(results);
}

TEST(CompactStates, KeepsTheTotalOfTheRatioAndTheIdentityOfTheState) {
  const auto state = State(80);
  const auto results = Compact(*state, {4, 10, 1});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(Slots(*results[0].segment), 6 * 80 / 4);
  EXPECT_EQ(Slots(*results[1].segment), 6 * 80 / 10);
  EXPECT_EQ(Slots(*results[2].segment), 6 * 80);
  for (const CompactedState& result : results) {
    EXPECT_EQ(result.segment->info(), state->info());
    EXPECT_EQ(result.segment->logical_tokens(), 80);
  }
  EXPECT_FALSE(results[0].segment->exact());
}

TEST(CompactStates, KeptSlotsAreTheStatesOwnKeysAtTheirPositions) {
  const auto state = State(80);
  const auto results = Compact(*state, {5});
  for (int layer = 0; layer < 3; ++layer) {
    for (int head = 0; head < 2; ++head) {
      const kv::HeadSlots& kept = results[0].segment->head(layer, head);
      const kv::HeadSlots& all = state->head(layer, head);
      ASSERT_EQ(kept.beta.size(), static_cast<size_t>(kept.slots));
      for (int slot = 0; slot < kept.slots; ++slot) {
        const auto from = kept.positions[slot] - state->info().first_position;
        EXPECT_TRUE(std::equal(kept.keys.begin() + slot * 16, kept.keys.begin() + slot * 16 + 16,
                               all.keys.begin() + from * 16));
      }
    }
  }
}

TEST(CompactStates, SharesNameTheTurnsOfTheState) {
  const auto results = Compact(*State(80), {5});
  ASSERT_EQ(results[0].provenance.size(), 6u);
  for (const auto& head : results[0].provenance) {
    for (const auto& shares : head) {
      ASSERT_EQ(shares.size(), 2u);
      EXPECT_GE(std::abs(shares[0].share), std::abs(shares[1].share));
      EXPECT_NE(shares[0].turn, shares[1].turn);
    }
  }
}

TEST(CompactStates, ThreadsDoNotChangeAByte) {
  const auto state = State(120);
  const auto one = Compact(*state, {8}), three = Compact(*state, {8}, 3);
  EXPECT_EQ(one[0].segment->ContentDigest(), three[0].segment->ContentDigest());
}

TEST(CompactStates, AskedForTogetherOrAloneARatioGivesTheSame) {
  const auto state = State(120);
  // Rows of the fit depend on the most slots asked for only beyond fit_rows.
  EXPECT_EQ(Compact(*state, {20, 4})[0].segment->ContentDigest(),
            Compact(*state, {20})[0].segment->ContentDigest());
}

TEST(CompactStates, RefusesWhatDoesNotFit) {
  const auto state = State(20);
  base::ThreadPool pool(1);
  const kv::StateCapture good = CaptureOf(*state, 10);
  const auto message = [&](const kv::KvSegment& of, const kv::StateCapture& capture, double ratio) {
    const std::vector<double> ratios = {ratio};
    return std::string(
        base::ToStd(CompactStates(of, capture, ratios, {}, pool, kGoOn).status().message()));
  };
  EXPECT_THAT(message(*state, CaptureOf(*State(21), 10), 4), testing::HasSubstr("21 slots"));
  kv::StateCapture bad = good;
  bad.layers[1].queries.pop_back();
  EXPECT_THAT(message(*state, bad, 4), testing::HasSubstr("layer 1"));
  bad = good;
  bad.q_heads = 3;
  EXPECT_THAT(message(*state, bad, 4), testing::HasSubstr("layer 0"));
  bad = good;
  bad.layers[2].log_sum_exp[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(*state, bad, 4), testing::HasSubstr("not finite"));
  for (const double ratio : {0.0, 0.5, -4.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(message(*state, good, ratio), testing::HasSubstr("at least 1"));
  }
  const auto compacted = Compact(*state, {4});
  EXPECT_THAT(message(*compacted[0].segment, good, 4), testing::HasSubstr("exact"));
  const std::atomic<bool> stop = true;
  const std::vector<double> ratios = {4};
  EXPECT_TRUE(absl::IsCancelled(CompactStates(*state, good, ratios, {}, pool, stop).status()));
}

}  // namespace
}  // namespace kvasir::compaction
