// Sampler: the law of its draws against the exact one, filters worked out by hand, ties, faults.
#include "engine/runtime/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace kvasir::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::vector<float> kLogits = {1.0f, -0.5f, 2.0f, 0.25f, 0.0f, -2.0f, 1.5f, 0.75f};

int32_t Draw(const std::vector<float>& logits, const SamplingParams& params, int64_t position) {
  Sampler sampler;
  const auto token = sampler.Sample(logits, params, position);
  EXPECT_TRUE(token.ok()) << token.status();
  return token.ok() ? token->id : -1;
}

// Ids that appear in 2,000 draws.
std::set<int32_t> Support(const std::vector<float>& logits, const SamplingParams& params) {
  std::set<int32_t> ids;
  for (int64_t position = 0; position < 2000; ++position) {
    ids.insert(Draw(logits, params, position));
  }
  return ids;
}

// Draws 20,000 tokens and compares their counts with softmax(logits / temperature) restricted to
// `kept`: chi-square with |kept| − 1 ≤ 7 degrees of freedom, whose quantile at 1 − 1e-6 is 40.52.
void ExpectLaw(const SamplingParams& params, const std::vector<int32_t>& kept) {
  constexpr int64_t kDraws = 20000;
  std::vector<double> law(kLogits.size(), 0.0);
  double total = 0;
  for (const int32_t id : kept) {
    law[id] = std::exp(static_cast<double>(kLogits[id]) / params.temperature);
    total += law[id];
  }
  std::vector<int64_t> counts(kLogits.size(), 0);
  for (int64_t position = 0; position < kDraws; ++position) {
    ++counts[Draw(kLogits, params, position)];
  }
  double chi_square = 0;
  for (size_t id = 0; id < law.size(); ++id) {
    const double expected = law[id] / total * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id;
      continue;
    }
    const double difference = static_cast<double>(counts[id]) - expected;
    chi_square += difference * difference / expected;
  }
  EXPECT_LT(chi_square, 40.52);
}

TEST(Sampler, DrawsFollowSoftmaxAtTheTemperature) {
  for (const double temperature : {0.5, 1.0, 1.7}) {
    ExpectLaw({.temperature = temperature, .seed = 7}, {0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST(Sampler, FiltersKeepTheLawOfWhatTheyLeave) {
  ExpectLaw({.temperature = 0.8, .top_k = 4, .seed = 8}, {2, 6, 0, 7});
  // Law at temperature 1: 2 .375, 6 .227, 0 .138, 7 .107, 3 .065, 4 .051, 1 .031, 5 .007: three
  // reach 0.7, the fourth is not needed.
  ExpectLaw({.temperature = 1.0, .top_p = 0.7, .seed = 9}, {2, 6, 0});
  // e^-1.25 = 0.287 of the likeliest is kept by 0.28: logits ≥ 0.75.
  ExpectLaw({.temperature = 1.0, .min_p = 0.28, .seed = 10}, {2, 6, 0, 7});
}

TEST(Sampler, TopKComesBeforeTopPAndTopPBeforeMinP) {
  // Within the two likeliest, 0.622 and 0.378, top_p 0.6 leaves one; over all tokens it leaves
  // three.
  EXPECT_EQ(Support(kLogits, {.top_p = 0.6, .top_k = 2}), (std::set<int32_t>{2}));
  EXPECT_EQ(Support(kLogits, {.top_p = 0.6}), (std::set<int32_t>{2, 6}));
  EXPECT_EQ(Support(kLogits, {.top_p = 0.6, .min_p = 0.6}), (std::set<int32_t>{2, 6}));
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualLogits) {
  EXPECT_EQ(Draw({1, 3, 3, 2}, {.temperature = 0}, 0), 1);
  EXPECT_EQ(Draw({1, 3, 3, 2}, {.top_k = 1}, 5), 1);
  EXPECT_EQ(Support({5, 5, 5, 5}, {.top_k = 2}), (std::set<int32_t>{0, 1}));
}

TEST(Sampler, TheDrawDependsOnSeedAndPositionOnly) {
  Sampler sampler;
  const SamplingParams params = {.top_p = 0.9, .seed = 3};
  std::vector<int32_t> forward, backward;
  for (int64_t p = 0; p < 100; ++p) forward.push_back(sampler.Sample(kLogits, params, p)->id);
  for (int64_t p = 99; p >= 0; --p) backward.push_back(sampler.Sample(kLogits, params, p)->id);
  EXPECT_EQ(forward, std::vector<int32_t>(backward.rbegin(), backward.rend()));
  SamplingParams other = params;
  other.seed = 4;
  std::vector<int32_t> of_other;
  for (int64_t p = 0; p < 100; ++p) of_other.push_back(sampler.Sample(kLogits, other, p)->id);
  EXPECT_NE(forward, of_other);
}

TEST(Sampler, NanAndInfinityAreErrorsAndMinusInfinityIsNeverChosen) {
  Sampler sampler;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    const auto token = sampler.Sample(std::vector<float>{0, bad, 1}, {.temperature = 0}, 0);
    EXPECT_EQ(token.status().code(), absl::StatusCode::kInternal);
    EXPECT_NE(token.status().message().find("token 1"), absl::string_view::npos);
  }
  const std::vector<float> none(5, -kInfinity);
  EXPECT_EQ(sampler.Sample(none, {}, 0).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Support({-kInfinity, 0, -kInfinity, 1e-3f}, {}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(Support({-kInfinity, 0, -kInfinity}, {.top_p = 0.5, .top_k = 3}),
            (std::set<int32_t>{1}));
}

TEST(Sampler, ExtremeLogitsAndTemperaturesStayFinite) {
  EXPECT_EQ(Draw({3e38f, -3e38f, 0}, {.temperature = 10}, 1), 0);
  EXPECT_EQ(Draw({1.0f, 1.0001f}, {.temperature = 1e-300}, 1), 1);
  EXPECT_EQ(Draw({-3e38f}, {}, 1), 0);
}

TEST(Sampler, TopPOverALargeVocabularyEqualsAFullSort) {
  std::vector<float> logits(1000);  // more than the first parts that are sorted
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % 1000) / 250;
  // e^(x/250) over ranks: the k likeliest of n = 1000 hold (1 − e^(−k/250)) / (1 − e^−4).
  const int64_t kept = std::lround(-250 * std::log(1 - 0.5 * (1 - std::exp(-4.0))));
  std::set<int32_t> ids;
  for (int64_t p = 0; p < 4000; ++p) ids.insert(Draw(logits, {.top_p = 0.5}, p));
  EXPECT_NEAR(static_cast<double>(ids.size()), static_cast<double>(kept), 1);
}

TEST(Sampler, LogprobsAreThoseOfTheModelItself) {
  Sampler sampler;
  const auto token = sampler.Sample(kLogits, {.temperature = 0.1, .top_k = 1, .logprobs = 3}, 0);
  ASSERT_TRUE(token.ok());
  double total = 0;
  for (const float logit : kLogits) total += std::exp(static_cast<double>(logit));
  EXPECT_EQ(token->id, 2);
  EXPECT_NEAR(token->logprob, 2.0 - std::log(total), 1e-14);
  ASSERT_EQ(token->top.size(), 3u);
  const int32_t ids[] = {2, 6, 0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(token->top[i].id, ids[i]);
    EXPECT_NEAR(token->top[i].logprob, kLogits[ids[i]] - std::log(total), 1e-14);
  }
  EXPECT_EQ(sampler.Sample(kLogits, {.logprobs = 20}, 0)->top.size(), kLogits.size());
}

TEST(Sampler, ParametersOutsideTheirRangeNameTheField) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<SamplingParams, const char*> cases[] = {{{.temperature = -0.1}, "temperature"},
                                                          {{.temperature = 10.1}, "temperature"},
                                                          {{.temperature = nan}, "temperature"},
                                                          {{.top_p = 0}, "top_p"},
                                                          {{.top_p = 1.1}, "top_p"},
                                                          {{.top_p = nan}, "top_p"},
                                                          {{.top_k = -1}, "top_k"},
                                                          {{.top_k = kTopKMax + 1}, "top_k"},
                                                          {{.min_p = -0.1}, "min_p"},
                                                          {{.min_p = nan}, "min_p"},
                                                          {{.logprobs = -1}, "logprobs"},
                                                          {{.logprobs = 21}, "logprobs"}};
  for (const auto& [params, field] : cases) {
    const base::Status status = CheckSamplingParams(params);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_EQ(base::Field(status), field);
    EXPECT_EQ(base::Reason(status), "INVALID_FIELD");
  }
  EXPECT_TRUE(CheckSamplingParams({}).ok());
}

}  // namespace
}  // namespace kvasir::runtime
