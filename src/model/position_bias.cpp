#include "model/position_bias.h"

#include "model/embedding.h"

namespace bev {

PositionBias::PositionBias(ParamStore& params, const RelativeBiasSpec& spec)
    : table_(declare_table(params, spec.table)),
      positions_{.max_distance = spec.max_distance, .bidirectional = spec.bidirectional} {}

Tensor PositionBias::forward(Exec& ex, const ModelEnv& env, int64_t length) const {
  env.gather(ex, bucket());
  const Tensor bias = ex.keep.allocate(shape(length), table_.value.dtype, "relative_bias");
  ops::relative_bias(ex, {.table = table_.value, .positions = positions_, .bias = bias});
  return bias;
}

Tensor PositionBias::begin_backward(Exec& ex, int64_t length) const {
  const Tensor dbias = ex.scratch.allocate(shape(length), accumulation_of(table_.value.dtype),
                                           "relative_bias.gradient");
  ops::fill(ex, {.out = dbias, .value = 0});
  return dbias;
}

void PositionBias::backward(Exec& ex, ModelEnv& env, ConstTensor dbias) const {
  ArenaScope scope(ex.scratch);
  env.flow.begin_bucket(ex, bucket());
  const Tensor& grad = table_.grad;
  const Tensor sum = ex.scratch.allocate(grad.shape, dbias.dtype, "relative_bias.sum");
  ops::fill(ex, {.out = sum, .value = 0});
  ops::relative_bias_backward(ex, {.dbias = dbias, .positions = positions_, .dtable = sum});
  const bool adds = table_.accumulate();
  const Tensor term =
      adds ? ex.scratch.allocate(grad.shape, grad.dtype, "relative_bias.term") : grad;
  ops::copy(ex, {.in = sum, .out = term});
  if (adds) ops::residual_add(ex, {.residual = grad, .delta = term, .out = grad});
  env.flow.end_bucket(ex, bucket());
}

}  // namespace bev
