// Reductions in a fixed order, so that the result does not depend on the number of threads; bit
// hashes; the elementwise combination of parts from several ranks.
#pragma once

#include <cstdint>
#include <span>

#include "base/cuda_macros.h"
#include "device/exec.h"

namespace bev::ops {

// out += sum of x^2.  x contiguous; out f64 [1]
struct SquaredNorm {
  ConstTensor x;
  Tensor out;
};
void squared_norm(Exec& ex, const SquaredNorm& s);

// out[0] += scale * sum of x * weight, out[1] += scale * sum of weight.  x [n] accumulation type,
// weight f32 [n], scale f64 [1], optional: 1; out f64 [2]
struct WeightedSum {
  ConstTensor x, weight;
  ConstTensor scale{};
  Tensor out;
};
void weighted_sum(Exec& ex, const WeightedSum& s);

// out += the hash of x's bits (ops/reduce.h): equal on every device.  x contiguous; out i64 [1]
struct HashBits {
  ConstTensor x;
  Tensor out;
};
void hash_bits(Exec& ex, const HashBits& h);

}  // namespace bev::ops

// How the bits of a tensor become one number: a sum, so that the order does not matter, of each
// element mixed with its place, so that exchanged elements are noticed.

namespace bev {

// `bits`: the element's, zeros above them.
BEV_HOST_DEVICE inline uint64_t hash_of_element(uint64_t bits, uint64_t place) {
  uint64_t h = bits + (place + 1) * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
  h = (h ^ (h >> 29)) * 0xa0761d6478bd642fu;
  return h ^ (h >> 32);
}

}  // namespace bev

// What several ranks brought, as one.

namespace bev {

enum class ReduceOp : uint8_t { Sum, Max, Min };

}  // namespace bev

namespace bev::ops {

// out = the parts combined element by element, in their order, in the accumulation type, rounded
// once. All have out's shape and dtype and are contiguous; out may be one of them. At least one and
// at most kMostCombined parts.
struct Combine {
  std::span<const ConstTensor> parts;
  ReduceOp op = ReduceOp::Sum;
  Tensor out;
};
void combine(Exec& ex, const Combine& c);

constexpr size_t kMostCombined = 256;

}  // namespace bev::ops
