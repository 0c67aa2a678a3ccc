// y = x W^T + b, cut over the tensor region by columns of the output or by rows of the input.
#pragma once

#include <string>

#include "model/env.h"

namespace bev {

class Linear {
 public:
  enum class Cut : uint8_t {
    Output,  // each member computes some outputs from all inputs
    Input,   // each member computes a part of every output; the region sums them
  };
  struct Config {
    std::string name;
    int64_t in, out;
    Cut cut;
    bool bias;
    Init init;
    std::vector<Part> parts{};  // of the output
  };

  Linear(ParamStore& params, const Config& config);

  int64_t outputs() const { return weight_.value.shape[0]; }  // held here
  const Param& weight() const { return weight_; }

  // x [tokens, in], y [tokens, out]; `residual` [tokens, out], may be absent, is added to y.
  // `norm`, may be absent, is that of x.
  void forward(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor y, ConstTensor residual = {},
               const ops::FusedNorm& norm = {}) const;
  // y = activation(pre); pre = x W^T + b, may be absent, is kept. REQUIRES: Cut::Output.
  void forward_activated(Exec& ex, const ModelEnv& env, ConstTensor x, Activation activation,
                         Tensor pre, Tensor y, const ops::FusedNorm& norm = {}) const;

  void backward_input(Exec& ex, ConstTensor dy, Tensor dx) const;
  // dx = (dy W) * activation'(pre): the gradient with respect to pre of the layer before.
  void backward_input_activated(Exec& ex, ConstTensor dy, Activation activation, ConstTensor pre,
                                Tensor dx) const;
  // Adds to the gradients of weight and bias; to that of the weight alone when who wrote dy has
  // added the sums of dy over tokens to bias_grad().
  void backward_weight(Exec& ex, ModelEnv& env, ConstTensor dy, ConstTensor x,
                       bool dy_summed = false);
  Tensor bias_grad() const { return bias_ != nullptr ? bias_->grad : Tensor{}; }

 private:
  Cut cut_;
  Param& weight_;  // [out, in]
  Param* bias_;    // [out]
};

}  // namespace bev
