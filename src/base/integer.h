// Integer arithmetic that says what it expects.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace bev {

// a / b. REQUIRES: b > 0 and b divides a.
inline int64_t div_exact(int64_t a, int64_t b) {
  BEV_CHECK(b > 0 && a % b == 0, Internal, "{} is not a multiple of {}", a, b);
  return a / b;
}

// a / b rounded up. REQUIRES: a >= 0, b > 0.
constexpr int64_t div_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The smallest multiple of b that is not below a. REQUIRES: a >= 0, b > 0.
constexpr int64_t round_up(int64_t a, int64_t b) { return div_ceil(a, b) * b; }

// Conversion between integer types that must keep the value.
template <class To, class From>
To narrow(From value) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  BEV_CHECK(std::in_range<To>(value), Internal, "{} does not fit the integer type", value);
  return static_cast<To>(value);
}

// a * b, or nothing when the product does not fit. For sizes that come from files and flags.
inline bool multiply_overflows(int64_t a, int64_t b, int64_t& product) {
  return __builtin_mul_overflow(a, b, &product);
}

}  // namespace bev
