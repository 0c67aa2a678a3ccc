// What several ranks brought, as one.
#pragma once

#include <span>

#include "device/exec.h"

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
