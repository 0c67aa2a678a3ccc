// The one source of numerical bounds: tests do not invent numbers. A tolerance that must be raised
// is a finding, not a fix.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensor/dtype.h"

namespace bev::test {

// Half the distance from 1 to the next number, relative: the error of one rounding.
inline double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f32: return 0x1p-24;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0;
  }
}

// The bound of a result's error relative to the largest result, for a result stored in `dtype` that
// came from a sum of `reduction_length` terms, after `ops` operations each of which stores once.
//
// Every operation rounds its result to `dtype` once: one unit roundoff u. Its sum is formed in the
// accumulation type, whose n roundings u' are independent of each other to a good approximation, so
// that they grow as sqrt(n) u' and not as n u': the error stays below lambda sqrt(n) u' with a
// probability of at least 1 - 2 exp(-lambda^2 / 2) (Higham and Mary, "A new approach to
// probabilistic rounding error analysis", 2019). lambda = 8 never fails by chance and leaves room
// for the few units in the last place by which vector exp and tanh are off. A sum in the wrong type
// exceeds it at once: bf16 has 2^16 times the unit roundoff of f32.
inline double tolerance(DType dtype, int64_t reduction_length, int ops = 1) {
  constexpr double kLambda = 8;
  const double n = static_cast<double>(std::max<int64_t>(1, reduction_length));
  return ops *
         (unit_roundoff(dtype) + kLambda * std::sqrt(n) * unit_roundoff(accumulation_of(dtype)));
}

}  // namespace bev::test
