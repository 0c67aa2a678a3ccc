// Sums to a few numbers, in a fixed order: the result does not depend on the number of threads.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// out += sum of x^2.  x contiguous; out f64 [1]
struct SquaredNorm {
  ConstTensor x;
  Tensor out;
};
void squared_norm(Exec& ex, const SquaredNorm& s);

// out[0] += sum of x * weight, out[1] += sum of weight.  x [n] accumulation type, weight f32 [n],
// out f64 [2]
struct WeightedSum {
  ConstTensor x, weight;
  Tensor out;
};
void weighted_sum(Exec& ex, const WeightedSum& s);

// out += the hash of x's bits (ops/hash_rule.h): equal on every device.  x contiguous; out i64 [1]
struct HashBits {
  ConstTensor x;
  Tensor out;
};
void hash_bits(Exec& ex, const HashBits& h);

}  // namespace bev::ops
