// simd.h for AVX2 and FMA. Include simd.h instead.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/float_types.h"

namespace bev::cpu::avx2 {

struct Vec {
  static constexpr int kWidth = 8;
  using Mask = __m256;  // all bits of a lane set or none

  __m256 v;

  static Vec zero() { return {_mm256_setzero_ps()}; }
  static Vec broadcast(float x) { return {_mm256_set1_ps(x)}; }

  static Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Vec load(const float* p, int64_t count) {
    return count >= kWidth ? load(p) : Vec{_mm256_maskload_ps(p, first(count))};
  }
  static Vec load(const bf16* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vec load(const bf16* p, int64_t count) {
    if (count >= kWidth) return load(p);
    alignas(16) uint16_t bits[kWidth] = {};
    for (int64_t i = 0; i < count; ++i) bits[i] = p[i].bits;
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(bits)));
  }

  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(float* p, int64_t count) const {
    if (count >= kWidth) return store(p);
    _mm256_maskstore_ps(p, first(count), v);
  }
  void store(bf16* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow()); }
  void store(bf16* p, int64_t count) const {
    if (count >= kWidth) return store(p);
    alignas(16) uint16_t bits[kWidth];
    _mm_store_si128(reinterpret_cast<__m128i*>(bits), narrow());
    for (int64_t i = 0; i < count; ++i) p[i].bits = bits[i];
  }
  Vec as_bf16() const { return {_mm256_castsi256_ps(_mm256_slli_epi32(rounded(), 16))}; }

  // Lane groups of four: p, p + stride.
  static Vec load_quads(const float* p, int64_t stride) {
    return {
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1)};
  }

 private:
  static __m256i first(int64_t count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
  }
  static Vec widen(__m128i bits) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
  }
  // The bfloat16 bits of each lane in the low half of 32.
  __m256i rounded() const {
    const __m256i u = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i near = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(_mm256_srli_epi32(near, 16), quiet, nan);
  }
  __m128i narrow() const {
    const __m256i bits = rounded();
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
  }
};

inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
inline Vec round_even(Vec a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vec::Mask operator<(Vec a, Vec b) { return _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ); }
inline Vec select(Vec::Mask mask, Vec a, Vec b) { return {_mm256_blendv_ps(b.v, a.v, mask)}; }
inline Vec sign_of(Vec a, Vec b) {
  return {_mm256_or_ps(a.v, _mm256_and_ps(b.v, _mm256_set1_ps(-0.0f)))};
}
// In two steps, because 2^n itself may be outside the normal numbers.
inline Vec scale(Vec a, Vec n) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i whole = _mm256_cvtps_epi32(n.v);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i rest = _mm256_sub_epi32(whole, half);
  const __m256i p = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i q = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);
  return {_mm256_mul_ps(_mm256_mul_ps(a.v, _mm256_castsi256_ps(p)), _mm256_castsi256_ps(q))};
}
inline float sum(Vec a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float max_lane(Vec a) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Transposes the 4 x 4 blocks made of lane group g of a, b, c and d.
inline void transpose_quads(Vec& a, Vec& b, Vec& c, Vec& d) {
  const __m256d low_ab = _mm256_castps_pd(_mm256_unpacklo_ps(a.v, b.v));
  const __m256d high_ab = _mm256_castps_pd(_mm256_unpackhi_ps(a.v, b.v));
  const __m256d low_cd = _mm256_castps_pd(_mm256_unpacklo_ps(c.v, d.v));
  const __m256d high_cd = _mm256_castps_pd(_mm256_unpackhi_ps(c.v, d.v));
  a.v = _mm256_castpd_ps(_mm256_unpacklo_pd(low_ab, low_cd));
  b.v = _mm256_castpd_ps(_mm256_unpackhi_pd(low_ab, low_cd));
  c.v = _mm256_castpd_ps(_mm256_unpacklo_pd(high_ab, high_cd));
  d.v = _mm256_castpd_ps(_mm256_unpackhi_pd(high_ab, high_cd));
}

}  // namespace bev::cpu::avx2
