// y = x W^T + b over a tensor region. The column-parallel layer enters the region, the row-parallel
// layer leaves it: they own their GEMMs and their communication.
#pragma once

#include <string>

#include "model/env.h"

namespace bev {

struct LinearSpec {
  std::string name;
  int64_t in = 0, out = 0;
  bool bias = true;
  Init init{};
  std::vector<Part> parts{};  // of the output
};

struct LinearParams {
  Param& weight;  // [out, in]
  Param* bias;    // [out], optional

  ConstTensor bias_value() const {
    return bias != nullptr ? ConstTensor(bias->value) : ConstTensor{};
  }
  Tensor bias_grad() const { return bias != nullptr ? bias->grad : Tensor{}; }
};

// An activation fused into a GEMM: forward applies it to the result, backward its derivative.
struct FusedActivation {
  std::optional<Activation> kind{};
  Tensor input{};  // of the activation: forward writes it if it is present, backward reads it

  bool present() const { return kind.has_value(); }
};

// Each member of the region computes some outputs from all inputs.
class ColumnLinear {
 public:
  ColumnLinear(ParamStore& params, const LinearSpec& spec);

  const LinearParams& params() const { return params_; }
  int64_t outputs() const { return params_.weight.value.shape[0]; }  // local ones

  // x [rows, in] between regions, y [region rows, outputs()] = activation(gather(x) W^T + b).
  void forward(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor y,
               const FusedActivation& activation = {}) const;
  // dx = scatter(dy W); accumulates the gradients of weight and bias.
  void backward(Exec& ex, ModelEnv& env, ConstTensor dy, ConstTensor x, Tensor dx) const;

 private:
  LinearParams params_;
};

// Each member of the region computes a term of every output from some inputs; the region sums them.
class RowLinear {
 public:
  RowLinear(ParamStore& params, const LinearSpec& spec);

  const LinearParams& params() const { return params_; }

  // x [region rows, local inputs], y [rows, out] = scatter(x W^T) + b + residual. `residual`
  // is optional. REQUIRES: with a residual, env.borders.tensor.rows_unchanged().
  void forward(Exec& ex, const ModelEnv& env, ConstTensor x, ConstTensor residual, Tensor y) const;
  // dx = (gather(dy) W) * activation'(input); accumulates the gradients of weight and bias.
  void backward(Exec& ex, ModelEnv& env, Gradient dy, ConstTensor x, Tensor dx,
                const FusedActivation& activation = {}) const;

 private:
  LinearParams params_;
};

// Every member of the region computes the whole layer from the same rows. For heads: weight
// gradients are computed at once.
class ReplicatedLinear {
 public:
  ReplicatedLinear(ParamStore& params, const LinearSpec& spec);

  // y [rows, out] = activation(x W^T + b)
  void forward(Exec& ex, ConstTensor x, Tensor y, const FusedActivation& activation = {}) const;
  // dx = dy W; accumulates the gradients of weight and bias.
  void backward(Exec& ex, ConstTensor dy, ConstTensor x, Tensor dx) const;

 private:
  LinearParams params_;
};

}  // namespace bev
