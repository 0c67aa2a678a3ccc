// Relative positions of T5 (Raffel et al. 2020): a table has a value for each head and distance,
// which is added to the attention scores. All blocks on one hidden state share a table.
#pragma once

#include "model/env.h"
#include "ops/relative_bias.h"

namespace bev {

class PositionBias {
 public:
  struct Params {
    const Param& table;  // [buckets, local heads]
    ops::RelativePositions positions;
  };

  PositionBias(ParamStore& params, const RelativeBiasSpec& spec);

  Params params() const { return {table_, positions_}; }
  int bucket() const { return table_.bucket; }
  const std::string& name() const { return table_.spec.name; }

  // The bias [local heads, length, length] of a text, in ex.keep.
  Tensor forward(Exec& ex, const ModelEnv& env, int64_t length) const;
  // The gradient of a bias, which blocks add to: zeros in ex.scratch.
  Tensor begin_backward(Exec& ex, int64_t length) const;
  // Accumulates the gradient of the table.
  void backward(Exec& ex, ModelEnv& env, ConstTensor dbias) const;

 private:
  Shape shape(int64_t length) const { return {table_.value.shape[1], length, length}; }

  Param& table_;
  ops::RelativePositions positions_;
};

}  // namespace bev
