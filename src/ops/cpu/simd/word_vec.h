// Vectors of 32-bit words beside the Vec of simd.h, for random numbers. For kernel files (see
// simd.h).
//
// Every WordVec has
//   broadcast(u32), load(p), store(p), +, << n, xor3(a, b, c) = a ^ b ^ c
//   load_halves(p)                 the halves of kWidth / 2 words, low ones first, a word for each
//   multiply(a, b, high, low)      the halves of the 64-bit products; b is alike in all lanes
//   at_least(a, b)                 unsigned a >= b, as the Mask of Vec
//   as_floats, as_words            to Vec and back, keeping the bits
#pragma once

#include "ops/cpu/simd/simd.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

namespace bev::cpu::avx512 {

struct WordVec {
  __m512i v;
  static WordVec broadcast(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
  static WordVec load(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
  static WordVec load_halves(const uint32_t* p) {
    return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  void store(uint32_t* p) const { _mm512_storeu_si512(p, v); }
};
inline WordVec operator+(WordVec a, WordVec b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline WordVec operator<<(WordVec a, unsigned n) { return {_mm512_slli_epi32(a.v, n)}; }
inline WordVec xor3(WordVec a, WordVec b, WordVec c) {
  return {_mm512_ternarylogic_epi32(a.v, b.v, c.v, 0x96)};
}
inline void multiply(WordVec a, WordVec b, WordVec& high, WordVec& low) {
  const __m512i even = _mm512_mul_epu32(a.v, b.v);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), b.v);
  high.v = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
  low.v = _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
}
inline Vec::Mask at_least(WordVec a, WordVec b) { return _mm512_cmpge_epu32_mask(a.v, b.v); }
inline Vec as_floats(WordVec a) { return {_mm512_castsi512_ps(a.v)}; }
inline WordVec as_words(Vec a) { return {_mm512_castps_si512(a.v)}; }

}  // namespace bev::cpu::avx512

#elif defined(__AVX2__) && defined(__FMA__)

namespace bev::cpu::avx2 {

struct WordVec {
  __m256i v;
  static WordVec broadcast(uint32_t x) { return {_mm256_set1_epi32(static_cast<int>(x))}; }
  static WordVec load(const uint32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  static WordVec load_halves(const uint32_t* p) {
    return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  void store(uint32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
};
inline WordVec operator+(WordVec a, WordVec b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline WordVec operator<<(WordVec a, unsigned n) {
  return {_mm256_slli_epi32(a.v, static_cast<int>(n))};
}
inline WordVec xor3(WordVec a, WordVec b, WordVec c) {
  return {_mm256_xor_si256(_mm256_xor_si256(a.v, b.v), c.v)};
}
inline void multiply(WordVec a, WordVec b, WordVec& high, WordVec& low) {
  const __m256i even = _mm256_mul_epu32(a.v, b.v);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.v, 32), b.v);
  high.v = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  low.v = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
inline Vec::Mask at_least(WordVec a, WordVec b) {
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(a.v, b.v), a.v));
}
inline Vec as_floats(WordVec a) { return {_mm256_castsi256_ps(a.v)}; }
inline WordVec as_words(Vec a) { return {_mm256_castps_si256(a.v)}; }

}  // namespace bev::cpu::avx2

#else

namespace bev::cpu::portable {

struct WordVec {
  using Lanes = uint32_t __attribute__((vector_size(16)));
  Lanes v;
  static WordVec broadcast(uint32_t x) { return {Lanes{x, x, x, x}}; }
  static WordVec load(const uint32_t* p) {
    WordVec a;
    __builtin_memcpy(&a.v, p, sizeof a.v);
    return a;
  }
  static WordVec load_halves(const uint32_t* p) {
    return {Lanes{p[0] & 0xFFFF, p[0] >> 16, p[1] & 0xFFFF, p[1] >> 16}};
  }
  void store(uint32_t* p) const { __builtin_memcpy(p, &v, sizeof v); }
};
inline WordVec operator+(WordVec a, WordVec b) { return {a.v + b.v}; }
inline WordVec operator<<(WordVec a, unsigned n) { return {a.v << n}; }
inline WordVec xor3(WordVec a, WordVec b, WordVec c) { return {a.v ^ b.v ^ c.v}; }
inline void multiply(WordVec a, WordVec b, WordVec& high, WordVec& low) {
  for (int i = 0; i < Vec::kWidth; ++i) {
    const uint64_t product = uint64_t{a.v[i]} * b.v[i];
    high.v[i] = static_cast<uint32_t>(product >> 32);
    low.v[i] = static_cast<uint32_t>(product);
  }
}
inline Vec::Mask at_least(WordVec a, WordVec b) { return a.v >= b.v; }
inline Vec as_floats(WordVec a) { return {reinterpret_cast<Floats>(a.v)}; }
inline WordVec as_words(Vec a) { return {reinterpret_cast<WordVec::Lanes>(a.v)}; }

}  // namespace bev::cpu::portable

#endif

namespace bev::cpu {

template <class V>
using WordVecOf = decltype(as_words(V::zero()));

}  // namespace bev::cpu
