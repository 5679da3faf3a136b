#include "eval/bench/roof.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace kvasir::eval {
namespace {

constexpr size_t kWords = size_t{32} << 20;  // 256 MiB
constexpr int kPasses = 6;

uint64_t Sum(const uint64_t* words, size_t count) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
  }
  uint64_t sum = 0;
  for (const uint64_t lane : sums) sum += lane;
  return sum;
}

}  // namespace

double MeasureReadBandwidth(base::ThreadPool& pool) {
  const std::vector<uint64_t> words(kWords, 1);
  const int64_t pieces = pool.threads() * 8;
  std::vector<uint64_t> sums(pieces * 8);  // 64 bytes apart
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    pool.ParallelFor(pieces, [&](int64_t piece, int) {
      const size_t size = kWords / pieces;
      sums[piece * 8] = Sum(words.data() + piece * size, size);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(
        best, static_cast<double>(kWords / pieces * pieces * sizeof(uint64_t)) / seconds.count());
  }
  // The sums are used, so that no compiler leaves the reads out.
  return sums[0] == 0 ? 0 : best;
}

}  // namespace kvasir::eval
