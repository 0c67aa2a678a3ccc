// down(activation(up(x))), plain or gated.
#pragma once

#include <string>

#include "model/linear.h"
#include "model/model_spec.h"

namespace bev {

class Mlp {
 public:
  struct Saved {
    Tensor up;   // [tokens, ffn] before the activation; gated: [tokens, 2 ffn], gate then up
    Tensor act;  // [tokens, ffn]; absent when it is recomputed
  };

  Mlp(ParamStore& params, const std::string& name, const ModelSpec& b);

  // x, y [tokens, width]. `residual`, may be absent, is added to y where
  // env.tensor.rows_unchanged(). Without y only what backward needs is computed. `norm`, may be
  // absent, is that of x where it is not normalised yet.
  void forward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor residual, Tensor y, Saved& s,
               const ops::FusedNorm& norm = {}) const;
  // dy_summed: who wrote dy has added its sums over tokens to output_bias_grad().
  void backward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor dy, bool dy_summed, Tensor dx,
                const Saved& s);
  Tensor output_bias_grad() const { return down_.bias_grad(); }  // absent without a bias

 private:
  Shape activated(int64_t tokens) const;  // the shape after the activation

  Activation activation_;
  bool recompute_;  // the activation's output is computed again instead of kept
  Linear up_, down_;
};

}  // namespace bev
