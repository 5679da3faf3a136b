// Sampler: chooses the next token from one row of logits.
//
// The choice is a pure function of (logits, parameters, position): randomness is drawn at the
// position where the token will stand (base::UniformAt), so it depends neither on the batch nor on
// what was drawn before. All arithmetic is in double, in a fixed order, with an exponential of its
// own: equal logits give equal tokens on every CPU.
//
// Order of the filters (that of Hugging Face transformers): top_k, softmax at the temperature,
// top_p, min_p. Threads: one at a time (it owns scratch memory); a Sampler per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/status.h"

namespace kvasir::runtime {

inline constexpr double kTemperatureMax = 10.0;
inline constexpr int32_t kTopKMax = 1'000'000;
inline constexpr int32_t kLogprobsMax = 20;

struct SamplingParams {
  double temperature = 1.0;  // [0, kTemperatureMax]; 0: the most likely token, whatever the rest
  double top_p = 1.0;        // (0, 1]; keeps the smallest set of most likely tokens that reaches it
  int32_t top_k = 0;         // [0, kTopKMax]; keeps so many; 0: all
  double min_p = 0.0;        // [0, 1]; keeps tokens at least so likely relative to the likeliest
  uint64_t seed = 0;
  int32_t logprobs = 0;  // [0, kLogprobsMax]; 0: none; n: the chosen token's and the n largest
};

// Errors: InvalidArgument (reason INVALID_FIELD, field set) naming the value and its range.
base::Status CheckSamplingParams(const SamplingParams& params);

struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;  // natural; of the model's own law (temperature 1, no filter)
  bool operator==(const TokenLogprob&) const = default;
};

struct SampledToken {
  int32_t id = 0;
  double logprob = 0;             // when params.logprobs > 0
  std::vector<TokenLogprob> top;  // [min(params.logprobs, vocabulary)], likeliest first
};

class Sampler {
 public:
  // The token for logical position `position`. Equally likely tokens are ordered by id, lowest
  // first. A logit of −infinity is never chosen.
  // Errors: Internal (a logit is NaN or +infinity, or all are −infinity; names the token).
  // REQUIRES: logits not empty, parameters checked. Time: O(vocabulary) expected.
  base::StatusOr<SampledToken> Sample(std::span<const float> logits, const SamplingParams& params,
                                      int64_t position);

 private:
  struct Candidate {
    int32_t id = 0;
    float logit = 0;
    double weight = 0;  // proportional to the probability at the temperature
  };
  int32_t Draw(std::span<const float> logits, float max_logit, const SamplingParams& params,
               int64_t position);
  static bool Likelier(const Candidate& a, const Candidate& b);
  // Puts the likeliest `count` candidates from index `begin` on there, in order.
  void SortFirst(size_t begin, size_t count);
  void KeepTopK(size_t k);
  void KeepTopP(double weight_wanted);
  void AddLogprobs(std::span<const float> logits, float max_logit, int32_t count,
                   SampledToken& token);

  std::vector<Candidate> candidates_;
};

}  // namespace kvasir::runtime
