#include "engine/kernels/rope.h"

#include <cmath>
#include <cstring>

#include "engine/base/check.h"

namespace kvasir::kernels {

RopeTable::RopeTable(const RopeOptions& options) : options_(options) {
  KVASIR_CHECK(options.rotated >= 0 && options.rotated % 2 == 0 && options.positions_max >= 0);
  const int pairs = options.rotated / 2;
  KVASIR_CHECK(options.factors.empty() || options.factors.size() == static_cast<size_t>(pairs));
  cos_.resize(options.positions_max * pairs);
  sin_.resize(options.positions_max * pairs);
  for (int i = 0; i < pairs; ++i) {
    const double factor = options.factors.empty() ? 1.0 : options.factors[i];
    const double frequency =
        options.scale * std::pow(options.base, -2.0 * i / options.rotated) / factor;
    for (int64_t m = 0; m < options.positions_max; ++m) {
      const double angle = static_cast<double>(m) * frequency;
      cos_[m * pairs + i] = static_cast<float>(std::cos(angle));
      sin_[m * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void RopeTable::Rotate(const float* head, int width, int64_t m, float* out) const {
  KVASIR_CHECK(options_.rotated <= width && m >= 0 && m < options_.positions_max);
  const int pairs = options_.rotated / 2;
  const float* c = cos(m);
  const float* s = sin(m);
  for (int i = 0; i < pairs; ++i) {
    const int at = options_.interleaved ? 2 * i : i;
    const int bt = options_.interleaved ? 2 * i + 1 : i + pairs;
    const float a = head[at];
    const float b = head[bt];
    out[at] = std::fma(a, c[i], -(b * s[i]));
    out[bt] = std::fma(a, s[i], b * c[i]);
  }
  if (out != head) {
    std::memcpy(out + options_.rotated, head + options_.rotated,
                sizeof(float) * (width - options_.rotated));
  }
}

}  // namespace kvasir::kernels
