#include "engine/runtime/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/rng.h"

namespace kvasir::runtime {
namespace {

// Stream of base::UniformAt that sampling draws from.
constexpr uint64_t kSamplingStream = 1;

// e^x for x ≤ 0, within 1e-15 relative; 0 below −708. Only additions and multiplications in a fixed
// order, so equal on every CPU, which a library's exp is not. Reduction by ln 2 in two parts
// (Cody & Waite, "Software Manual for the Elementary Functions", 1980), then Taylor's series.
double ExpOfNegative(double x) {
  if (!(x > -708.0)) return 0.0;
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1, kLn2Low = 0x1.cf79abc9e3b3ap-40;
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer
  const double k = (x * kLog2E + kRound) - kRound;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1.0 / 6227020800.0;  // 1 / 13!
  constexpr double kInverseFactorials[] = {1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           1.0 / 2.0,
                                           1.0,
                                           1.0};
  for (const double c : kInverseFactorials) sum = sum * r + c;
  const int64_t exponent = static_cast<int64_t>(k) + 1023;  // ≥ 1 because x > −708
  return sum * std::bit_cast<double>(exponent << 52);
}

template <typename T>
base::Status CheckRange(const char* field, T value, T min, T max) {
  if (value >= min && value <= max) return base::OkStatus();
  return base::WithField(base::WithReason(base::InvalidArgument("{} is {}, {} to {} are allowed",
                                                                field, value, min, max),
                                          "INVALID_FIELD"),
                         field);
}

// The id of the largest logit, lowest id on ties.
base::StatusOr<int32_t> Argmax(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float max = -kInfinity;
  int32_t id = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInfinity)) {
      return base::Internal("the logit of token {} is {}", i, logits[i]);
    }
    if (logits[i] > max) {
      max = logits[i];
      id = static_cast<int32_t>(i);
    }
  }
  if (id < 0) return base::Internal("all {} logits are -infinity", logits.size());
  return id;
}

}  // namespace

base::Status CheckSamplingParams(const SamplingParams& params) {
  KVASIR_RETURN_IF_ERROR(CheckRange("temperature", params.temperature, 0.0, kTemperatureMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("top_p", params.top_p, 0.0, 1.0));
  if (params.top_p == 0.0) {
    return base::WithField(
        base::WithReason(base::InvalidArgument("top_p is 0, more than 0 is needed"),
                         "INVALID_FIELD"),
        "top_p");
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("top_k", params.top_k, 0, kTopKMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("min_p", params.min_p, 0.0, 1.0));
  return CheckRange("logprobs", params.logprobs, 0, kLogprobsMax);
}

base::StatusOr<SampledToken> Sampler::Sample(std::span<const float> logits,
                                             const SamplingParams& params, int64_t position) {
  KVASIR_CHECK(!logits.empty());
  KVASIR_ASSIGN_OR_RETURN(const int32_t likeliest, Argmax(logits));
  const float max_logit = logits[static_cast<size_t>(likeliest)];
  SampledToken token;
  token.id = params.temperature == 0 ? likeliest : Draw(logits, max_logit, params, position);
  if (params.logprobs > 0) AddLogprobs(logits, max_logit, params.logprobs, token);
  return token;
}

int32_t Sampler::Draw(std::span<const float> logits, float max_logit, const SamplingParams& params,
                      int64_t position) {
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 0});
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < candidates_.size()) {
    KeepTopK(static_cast<size_t>(params.top_k));
  }
  double total = 0;
  for (Candidate& c : candidates_) {
    c.weight = ExpOfNegative((static_cast<double>(c.logit) - max_logit) / params.temperature);
    total += c.weight;
  }
  if (params.top_p < 1.0) KeepTopP(params.top_p * total);
  // The largest weight is exactly 1.
  if (params.min_p > 0)
    std::erase_if(candidates_, [&](auto& c) { return c.weight < params.min_p; });
  total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double target =
      base::UniformAt(params.seed, kSamplingStream, static_cast<uint64_t>(position)) * total;
  double sum = 0;
  int32_t last = -1;
  for (const Candidate& c : candidates_) {
    if (c.weight == 0) continue;
    last = c.id;
    sum += c.weight;
    if (sum > target) break;
  }
  return last;
}

bool Sampler::Likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void Sampler::SortFirst(size_t begin, size_t count) {
  const auto first = candidates_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  if (last != candidates_.end()) std::nth_element(first, last - 1, candidates_.end(), Likelier);
  std::sort(first, last, Likelier);
}

void Sampler::KeepTopK(size_t k) {
  SortFirst(0, k);
  candidates_.resize(k);
}

void Sampler::KeepTopP(double weight_wanted) {
  double sum = 0;
  size_t kept = 0;
  // Sorted in parts that grow, because the set is usually a tiny part of the vocabulary.
  for (size_t part = 64; kept < candidates_.size(); part *= 4) {
    const size_t count = std::min(part, candidates_.size() - kept);
    SortFirst(kept, count);
    for (size_t i = 0; i < count; ++i) {
      sum += candidates_[kept++].weight;
      if (sum >= weight_wanted) {
        candidates_.resize(kept);
        return;
      }
    }
  }
}

void Sampler::AddLogprobs(std::span<const float> logits, float max_logit, int32_t count,
                          SampledToken& token) {
  candidates_.clear();
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 0});
    total += ExpOfNegative(static_cast<double>(logits[i]) - max_logit);
  }
  const double log_total = max_logit + std::log(total);
  const size_t top = std::min(static_cast<size_t>(count), candidates_.size());
  SortFirst(0, top);
  for (size_t i = 0; i < top; ++i) {
    token.top.push_back({candidates_[i].id, candidates_[i].logit - log_total});
  }
  token.logprob = logits[static_cast<size_t>(token.id)] - log_total;
}

}  // namespace kvasir::runtime
