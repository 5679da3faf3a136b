// Sixteen float lanes in one AVX-512 register. Included inside an anonymous namespace by one path
// file; contracts stand in simd_generic.h.
#pragma once

struct Vec {
  __m512 v;
};

inline Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
inline Vec Set(float x) { return {_mm512_set1_ps(x)}; }
inline Vec Add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec Sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec Mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec Div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec Max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec Min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec Sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
inline Vec Negate(Vec a) {
  return {_mm512_castsi512_ps(
      _mm512_xor_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(static_cast<int>(1u << 31))))};
}
inline Vec ZeroBelow(Vec x, Vec limit, Vec a) {
  return {
      _mm512_mask_mov_ps(a.v, _mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), _mm512_setzero_ps())};
}
inline Vec PowerOfTwo(Vec t) {
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(t.v), 23),
                                               _mm512_set1_epi32(0x3f800000)))};
}

inline __m256 UpperHalf(__m512 a) {
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
}
inline float ReduceAdd(Vec a) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), UpperHalf(a.v));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}
inline float ReduceMax(Vec a) {
  const __m256 v8 = _mm256_max_ps(_mm512_castps512_ps256(a.v), UpperHalf(a.v));
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}

inline Vec LoadHalf(const unsigned short* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline void StoreHalf(unsigned short* p, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
