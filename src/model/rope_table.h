// Cosines and sines of rotary positions, computed once in float64.
#pragma once

#include <vector>

#include "device/memory.h"
#include "model/model_spec.h"
#include "tensor/tensor.h"

namespace bev {

class RopeTable {
 public:
  // `dtype`: of the hidden states.
  RopeTable(Device& device, const RopeSpec& spec, DType dtype);

  const RopeSpec& spec() const { return spec_; }

  ConstTensor cosine, sine;  // [positions, rotary_dim / 2] of the accumulation type

 private:
  RopeSpec spec_;
  Buffer buffer_;
};

// The frequency of each rotated pair, after scaling.
std::vector<double> rope_frequencies(const RopeSpec& spec);

}  // namespace bev
