// down(activation(up(x))), plain or gated.
#pragma once

#include <string>

#include "model/linear.h"

namespace bev {

class Mlp {
 public:
  struct Saved {
    Tensor up;   // [tokens, ffn] before the activation; gated: [tokens, 2 ffn], gate then up
    Tensor act;  // [tokens, ffn]; absent if it is recomputed
  };
  struct Params {
    const LinearParams &up, &down;
  };

  Mlp(ParamStore& params, const std::string& name, const MlpSpec& spec);

  Params params() const { return {up_.params(), down_.params()}; }

  // x, y [rows, width]. `residual`, optional, is added to y. Without y, computes only what backward
  // needs.
  void forward(Exec& ex, ModelEnv& env, ConstTensor x, ConstTensor residual, Tensor y,
               Saved& s) const;
  void backward(Exec& ex, ModelEnv& env, Gradient dy, ConstTensor x, Tensor dx,
                const Saved& s) const;

 private:
  bool is_gated() const { return bev::is_gated(activation_); }
  Shape activated(int64_t tokens) const;  // shape of Saved::act
  FusedActivation fused(const Saved& s) const {
    return is_gated() ? FusedActivation{} : FusedActivation{activation_, s.up};
  }

  Activation activation_;
  bool recompute_;
  ColumnLinear up_;
  RowLinear down_;
};

}  // namespace bev
