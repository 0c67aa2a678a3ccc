// simd.h for AVX-512 (F, BW, DQ, VL). Include simd.h instead.
#pragma once

// The intrinsics of g++ 12 start from vectors that are undefined on purpose, and it warns of them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#include "base/float_types.h"

namespace bev::cpu::avx512 {

struct Vec {
  static constexpr int kWidth = 16;
  using Mask = __mmask16;

  __m512 v;

  static Vec zero() { return {_mm512_setzero_ps()}; }
  static Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Mask first(int64_t count) {
    return static_cast<Mask>(count >= kWidth ? 0xFFFFu : (1u << count) - 1u);
  }

  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec load(const float* p, int64_t count) {
    return {_mm512_maskz_loadu_ps(first(count), p)};
  }
  static Vec load(const bf16* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vec load(const bf16* p, int64_t count) {
    return widen(_mm256_maskz_loadu_epi16(first(count), p));
  }

  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, int64_t count) const { _mm512_mask_storeu_ps(p, first(count), v); }
  void store(bf16* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow()); }
  void store(bf16* p, int64_t count) const { _mm256_mask_storeu_epi16(p, first(count), narrow()); }
  Vec as_bf16() const { return {_mm512_castsi512_ps(_mm512_slli_epi32(rounded(), 16))}; }

  // Lane groups of four: p, p + stride, p + 2 stride, p + 3 stride.
  static Vec load_quads(const float* p, int64_t stride) {
    __m512 q = _mm512_castps128_ps512(_mm_loadu_ps(p));
    q = _mm512_mask_broadcast_f32x4(q, 0x00F0, _mm_loadu_ps(p + stride));
    q = _mm512_mask_broadcast_f32x4(q, 0x0F00, _mm_loadu_ps(p + 2 * stride));
    q = _mm512_mask_broadcast_f32x4(q, 0xF000, _mm_loadu_ps(p + 3 * stride));
    return {q};
  }

 private:
  static Vec widen(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  // The bfloat16 bits of each lane in the low half of 32.
  __m512i rounded() const {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i near = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const Mask nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(near, 16), nan, high, _mm512_set1_epi32(0x40));
  }
  __m256i narrow() const { return _mm512_cvtepi32_epi16(rounded()); }
};

inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
inline Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
inline Vec round_even(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vec::Mask operator<(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ); }
inline Vec select(Vec::Mask mask, Vec a, Vec b) { return {_mm512_mask_blend_ps(mask, b.v, a.v)}; }
inline Vec sign_of(Vec a, Vec b) {
  return {_mm512_or_ps(a.v, _mm512_and_ps(b.v, _mm512_set1_ps(-0.0f)))};
}
inline Vec scale(Vec a, Vec n) { return {_mm512_scalef_ps(a.v, n.v)}; }
inline float sum(Vec a) { return _mm512_reduce_add_ps(a.v); }
inline float max_lane(Vec a) { return _mm512_reduce_max_ps(a.v); }

// Transposes the 4 x 4 blocks made of lane group g of a, b, c and d.
inline void transpose_quads(Vec& a, Vec& b, Vec& c, Vec& d) {
  const __m512d low_ab = _mm512_castps_pd(_mm512_unpacklo_ps(a.v, b.v));
  const __m512d high_ab = _mm512_castps_pd(_mm512_unpackhi_ps(a.v, b.v));
  const __m512d low_cd = _mm512_castps_pd(_mm512_unpacklo_ps(c.v, d.v));
  const __m512d high_cd = _mm512_castps_pd(_mm512_unpackhi_ps(c.v, d.v));
  a.v = _mm512_castpd_ps(_mm512_unpacklo_pd(low_ab, low_cd));
  b.v = _mm512_castpd_ps(_mm512_unpackhi_pd(low_ab, low_cd));
  c.v = _mm512_castpd_ps(_mm512_unpacklo_pd(high_ab, high_cd));
  d.v = _mm512_castpd_ps(_mm512_unpackhi_pd(high_ab, high_cd));
}

}  // namespace bev::cpu::avx512
