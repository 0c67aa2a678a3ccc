// bfloat16 and IEEE half as storage types. Arithmetic happens in float; conversion to the short
// types rounds to nearest even and keeps NaN a NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace bev {

struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) {
    const auto u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    const uint32_t rounded = u + 0x7FFFu + ((u >> 16) & 1u);
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : rounded >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

struct f16 {
  uint16_t bits = 0;
  f16() = default;
  explicit f16(float value);
  explicit operator float() const;
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

inline f16::f16(float value) {
  const auto u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7FFFFFFFu;
  uint32_t h;
  if (magnitude > 0x7F800000u) {
    h = 0x7E00u;  // NaN
  } else if (magnitude >= 0x477FF000u) {
    h = 0x7C00u;  // 65520 and above round to infinity
  } else if (magnitude >= 0x38800000u) {
    h = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // Subnormal halves: adding 0.5 aligns the bits so that the addition itself rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    h = std::bit_cast<uint32_t>(shifted) - 0x3F000000u;
  }
  bits = static_cast<uint16_t>(sign | h);
}

inline f16::operator float() const {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

}  // namespace bev
