// Randomness. Two kinds, never mixed: a counter-based generator for everything that must repeat (sampling, tests), and
// the operating system's for what must not be guessed (ids, salts, keys).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kvasir::base {

// Four independent uniform 32-bit words for the point (key, counter): a pure function, so that a token's draw depends on
// (seed, request, position) alone and never on what else ran.
// Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.
std::array<uint32_t, 4> Philox(uint64_t key, std::array<uint32_t, 4> counter);

// Uniform double in [0, 1) made of 53 bits of Philox(seed, (stream, position)).
double UniformAt(uint64_t seed, uint64_t stream, uint64_t position);

// Source of unguessable bytes. Threads: concurrent calls allowed.
class Entropy {
 public:
  virtual ~Entropy() = default;
  // Fills `out`.
  virtual void Fill(std::span<uint8_t> out) = 0;
};

// The operating system's generator. Blocks only before the kernel's pool is first seeded.
class SystemEntropy final : public Entropy {
 public:
  void Fill(std::span<uint8_t> out) override;
};

// Repeatable bytes from a seed (tests, simulation). Not secret. Threads: one at a time.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : seed_(seed) {}
  void Fill(std::span<uint8_t> out) override;

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

}  // namespace kvasir::base
