// Cross attention: queries from the hidden state, keys and values from another one, the context
// (Vaswani et al. 2017).
#pragma once

#include <string>

#include "model/attention.h"

namespace bev {

// A hidden state that cross attention reads.
struct ContextView {
  const TextView& text;
  ConstTensor hidden;  // [tokens, width], local rows
};

class CrossAttention {
 public:
  struct Saved {
    Tensor q;         // [tokens, heads * head_dim]
    Tensor kv;        // [context tokens, 2 kv_heads * head_dim]
    CoreOutput core;  // absent if it is recomputed
  };
  struct Params {
    const LinearParams &q, &kv, &out;
  };

  // `layer`: of the model.
  CrossAttention(ParamStore& params, const std::string& name, const AttentionSpec& spec,
                 int64_t layer);

  Params params() const { return {q_.params(), kv_.params(), out_.params()}; }

  // x, y [rows, width]. `residual`, optional, is added to y.
  void forward(Exec& ex, ModelEnv& env, const TextView& text, const ContextView& context,
               ConstTensor x, ConstTensor residual, Tensor y, Saved& s) const;
  // Overwrites dx and dcontext.
  void backward(Exec& ex, ModelEnv& env, const TextView& text, const ContextView& context,
                Gradient dy, ConstTensor x, Tensor dx, Tensor dcontext, const Saved& s) const;

 private:
  ops::AttentionInput input(const ModelEnv& env, const TextView& text, const ContextView& context,
                            const Saved& s) const;

  int64_t layer_, head_dim_;
  double scale_;
  bool masks_padding_, recompute_;
  DropoutSpec dropout_;
  ColumnLinear q_, kv_;
  RowLinear out_;
  int64_t heads_, kv_heads_;  // local ones
};

}  // namespace bev
