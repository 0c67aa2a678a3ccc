// simd.h with the vector types of the compiler, for any CPU. Include simd.h instead.
#pragma once

#include <cstdint>

#include "base/float_types.h"

namespace bev::cpu::portable {

using Floats = float __attribute__((vector_size(16)));
using Words = int32_t __attribute__((vector_size(16)));

struct Vec {
  static constexpr int kWidth = 4;
  using Mask = Words;  // all bits of a lane set or none

  Floats v;

  static Vec zero() { return {Floats{}}; }
  static Vec broadcast(float x) { return {Floats{x, x, x, x}}; }

  static Vec load(const float* p) {
    Vec a;
    __builtin_memcpy(&a.v, p, sizeof a.v);
    return a;
  }
  static Vec load(const float* p, int64_t count) {
    Vec a = zero();
    for (int64_t i = 0; i < count && i < kWidth; ++i) a.v[i] = p[i];
    return a;
  }
  static Vec load(const bf16* p) { return load(p, kWidth); }
  static Vec load(const bf16* p, int64_t count) {
    Words bits{};
    for (int64_t i = 0; i < count && i < kWidth; ++i) bits[i] = p[i].bits << 16;
    return {reinterpret_cast<Floats>(bits)};
  }

  void store(float* p) const { __builtin_memcpy(p, &v, sizeof v); }
  void store(float* p, int64_t count) const {
    for (int64_t i = 0; i < count && i < kWidth; ++i) p[i] = v[i];
  }
  void store(bf16* p) const { store(p, kWidth); }
  void store(bf16* p, int64_t count) const {
    for (int64_t i = 0; i < count && i < kWidth; ++i) p[i] = bf16(v[i]);
  }
  Vec as_bf16() const {
    Vec a;
    for (int i = 0; i < kWidth; ++i) a.v[i] = static_cast<float>(bf16(v[i]));
    return a;
  }

  static Vec load_quads(const float* p, int64_t) { return load(p); }
};

inline Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
inline Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
inline Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
inline Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }  // rounds twice
inline Vec min(Vec a, Vec b) { return {a.v < b.v ? a.v : b.v}; }
inline Vec max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
inline Vec abs(Vec a) {
  return {reinterpret_cast<Floats>(reinterpret_cast<Words>(a.v) & INT32_MAX)};
}
inline Vec sqrt(Vec a) {
  for (int i = 0; i < Vec::kWidth; ++i) a.v[i] = __builtin_sqrtf(a.v[i]);
  return a;
}
// REQUIRES: |a| <= 2^22. Adding 1.5 2^23 leaves no bits for the fraction.
inline Vec round_even(Vec a) { return {(a.v + 0x1.8p23f) - 0x1.8p23f}; }
inline Vec::Mask operator<(Vec a, Vec b) { return a.v < b.v; }
inline Vec select(Vec::Mask mask, Vec a, Vec b) { return {mask ? a.v : b.v}; }
inline Vec sign_of(Vec a, Vec b) {
  const Words sign = reinterpret_cast<Words>(b.v) & INT32_MIN;
  return {reinterpret_cast<Floats>(reinterpret_cast<Words>(a.v) | sign)};
}
// In two steps, because 2^n itself may be outside the normal numbers.
inline Vec scale(Vec a, Vec n) {
  const Words whole = __builtin_convertvector(n.v, Words);
  const Words half = whole >> 1;
  const Words p = (half + 127) << 23, q = (whole - half + 127) << 23;
  return {a.v * reinterpret_cast<Floats>(p) * reinterpret_cast<Floats>(q)};
}
inline float sum(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
inline float max_lane(Vec a) {
  const float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2], y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return x > y ? x : y;
}

inline void transpose_quads(Vec& a, Vec& b, Vec& c, Vec& d) {
  const Floats low_ab = __builtin_shufflevector(a.v, b.v, 0, 4, 1, 5);
  const Floats high_ab = __builtin_shufflevector(a.v, b.v, 2, 6, 3, 7);
  const Floats low_cd = __builtin_shufflevector(c.v, d.v, 0, 4, 1, 5);
  const Floats high_cd = __builtin_shufflevector(c.v, d.v, 2, 6, 3, 7);
  a.v = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
  b.v = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
  c.v = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
  d.v = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

}  // namespace bev::cpu::portable
