#include "engine/base/rng.h"

#include <sys/random.h>

#include <cerrno>

#include "engine/base/check.h"

namespace kvasir::base {

std::array<uint32_t, 4> Philox(uint64_t key, std::array<uint32_t, 4> c) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

double UniformAt(uint64_t seed, uint64_t stream, uint64_t position) {
  const auto words = Philox(seed, {static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32),
                                   static_cast<uint32_t>(position),
                                   static_cast<uint32_t>(position >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

void SystemEntropy::Fill(std::span<uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    KVASIR_CHECK(got > 0 || errno == EINTR);
    if (got > 0) out = out.subspan(static_cast<size_t>(got));
  }
}

void SeededEntropy::Fill(std::span<uint8_t> out) {
  for (size_t i = 0; i < out.size(); ++i, ++next_) {
    const uint64_t word = next_ / 16;
    const auto words = Philox(seed_, {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32), 0, 0});
    out[i] = static_cast<uint8_t>(words[next_ / 4 % 4] >> (next_ % 4 * 8));
  }
}

}  // namespace kvasir::base
