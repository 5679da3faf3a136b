// Sixteen float lanes in portable C++. Included inside an anonymous namespace by one path file; the
// other simd_*.h have the same functions with the same bits.
//
// Sources: IEEE 754-2008 (binary16; conversions round to nearest even, as F16C does).
#pragma once

struct Vec {
  float lane[16];
};

#define KVASIR_LANES(expression) \
  Vec out;                       \
  for (int i = 0; i < 16; ++i) { \
    out.lane[i] = (expression);  \
  }                              \
  return out

inline Vec Load(const float* p) { KVASIR_LANES(p[i]); }
inline void Store(float* p, Vec a) {
  for (int i = 0; i < 16; ++i) p[i] = a.lane[i];
}
inline Vec Set(float x) { KVASIR_LANES(x); }
inline Vec Add(Vec a, Vec b) { KVASIR_LANES(a.lane[i] + b.lane[i]); }
inline Vec Sub(Vec a, Vec b) { KVASIR_LANES(a.lane[i] - b.lane[i]); }
inline Vec Mul(Vec a, Vec b) { KVASIR_LANES(a.lane[i] * b.lane[i]); }
inline Vec Div(Vec a, Vec b) { KVASIR_LANES(a.lane[i] / b.lane[i]); }
// a · b + c, rounded once.
inline Vec Fma(Vec a, Vec b, Vec c) {
  KVASIR_LANES(__builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]));
}
// The second operand where either is NaN (as the instructions do).
inline Vec Max(Vec a, Vec b) { KVASIR_LANES(a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]); }
inline Vec Min(Vec a, Vec b) { KVASIR_LANES(a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]); }
inline Vec Sqrt(Vec a) { KVASIR_LANES(__builtin_sqrtf(a.lane[i])); }
// −a, exactly.
inline Vec Negate(Vec a) { KVASIR_LANES(-a.lane[i]); }
// a where !(x < limit), else 0.
inline Vec ZeroBelow(Vec x, Vec limit, Vec a) {
  KVASIR_LANES(x.lane[i] < limit.lane[i] ? 0.0f : a.lane[i]);
}
inline unsigned Bits(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
inline float FromBits(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
// 2^n of t = 1.5·2^23 + n, −126 ≤ n ≤ 127.
inline Vec PowerOfTwo(Vec t) { KVASIR_LANES(FromBits((Bits(t.lane[i]) << 23) + 0x3f800000u)); }

// Lanes are combined at distance 8, 4, 2, 1: the tree of every path.
inline float ReduceAdd(Vec a) {
  for (int step = 8; step != 0; step /= 2) {
    for (int i = 0; i < step; ++i) a.lane[i] = a.lane[i] + a.lane[i + step];
  }
  return a.lane[0];
}
inline float ReduceMax(Vec a) {
  for (int step = 8; step != 0; step /= 2) {
    for (int i = 0; i < step; ++i) {
      a.lane[i] = a.lane[i] > a.lane[i + step] ? a.lane[i] : a.lane[i + step];
    }
  }
  return a.lane[0];
}

inline float HalfToFloat(unsigned short half) {
  const unsigned sign = static_cast<unsigned>(half & 0x8000) << 16;
  const unsigned exponent = half >> 10 & 31;
  const unsigned fraction = half & 0x3ff;
  if (exponent == 31) {  // a signalling NaN is made quiet
    return FromBits(sign | 0x7f800000u | fraction << 13 | (fraction != 0 ? 0x400000u : 0u));
  }
  if (exponent != 0) return FromBits(sign | (exponent + 112) << 23 | fraction << 13);
  return FromBits(sign | Bits(static_cast<float>(fraction) * 0x1p-24f));
}

inline unsigned short FloatToHalf(float x) {
  const unsigned bits = Bits(x);
  const unsigned sign = bits >> 16 & 0x8000;
  const unsigned magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN: made quiet, the upper payload kept
    return static_cast<unsigned short>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  }
  if (magnitude >= 0x477ff000) return static_cast<unsigned short>(sign | 0x7c00);  // ≥ 65520
  if (magnitude < 0x38800000) {  // below 2^-14: the sum rounds at 2^-24, to nearest even
    const float rounded = FromBits(magnitude) + 0.5f;
    return static_cast<unsigned short>(sign | (Bits(rounded) - 0x3f000000));
  }
  const unsigned even = magnitude >> 13 & 1;
  return static_cast<unsigned short>(sign | ((magnitude - 0x38000000 + 0xfff + even) >> 13));
}

inline Vec LoadHalf(const unsigned short* p) { KVASIR_LANES(HalfToFloat(p[i])); }
inline void StoreHalf(unsigned short* p, Vec a) {
  for (int i = 0; i < 16; ++i) p[i] = FloatToHalf(a.lane[i]);
}

#undef KVASIR_LANES
