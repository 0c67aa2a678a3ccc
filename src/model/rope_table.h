// The angles of rotary positions, computed once in float64.
#pragma once

#include <vector>

#include "device/memory.h"
#include "model/model_spec.h"
#include "tensor/tensor.h"

namespace bev {

class RopeTable {
 public:
  // Empty when the model does not rotate.
  RopeTable(Device& device, const ModelSpec& b, DType dtype);

  ConstTensor cosine, sine;  // [positions, rotary_dim / 2] of the accumulation type

 private:
  Buffer buffer_;
};

// The frequency of each rotated pair, after scaling.
std::vector<double> rope_frequencies(const ModelConfig& model, int64_t rotary_dim);

}  // namespace bev
