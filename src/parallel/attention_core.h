// Attention over the tokens of the whole sequence, on any context rank.
#pragma once

#include "ops/attention.h"

namespace bev {

class AttentionCore {
 public:
  virtual ~AttentionCore() = default;

  // `layer` of the model. `in` has this rank's tokens and heads; out [tokens, heads, d]; lse
  // [sequences, heads, length], which backward reads together with out. A core without a backward
  // may leave lse unwritten.
  virtual void forward(Exec& ex, int64_t layer, const ops::AttentionInput& in, Tensor out,
                       Tensor lse) = 0;

  struct Gradients {
    Tensor dq, dk, dv;  // overwritten
    Tensor dbias{};     // with a bias, optional: added to
  };
  virtual void backward(Exec& ex, const ops::AttentionInput& in, ConstTensor dout, ConstTensor out,
                        ConstTensor lse, const Gradients& gradients) = 0;
};

// One context rank: the kernel.
class LocalAttention final : public AttentionCore {
 public:
  void forward(Exec& ex, int64_t, const ops::AttentionInput& in, Tensor out, Tensor lse) override {
    ops::attention(ex, {in, out, lse});
  }
  void backward(Exec& ex, const ops::AttentionInput& in, ConstTensor dout, ConstTensor out,
                ConstTensor lse, const Gradients& gradients) override {
    ops::attention_backward(
        ex, {in, dout, out, lse, gradients.dq, gradients.dk, gradients.dv, gradients.dbias});
  }
};

}  // namespace bev
