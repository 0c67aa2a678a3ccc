// Attention over the tokens of the whole sequence, whoever holds them.
#pragma once

#include "ops/attention.h"

namespace bev {

// q [tokens, heads, d], k and v [tokens, kv_heads, d]: this rank's tokens and heads.
struct AttentionInput {
  ConstTensor q, k, v;
  int64_t layer = 0;  // of the model
  int64_t sequences = 1;
  double scale = 1;
  ops::AttentionMask mask{};
  ops::AttentionDropout dropout{};
};

class AttentionCore {
 public:
  virtual ~AttentionCore() = default;

  // out [tokens, heads, d]; lse [sequences, heads, length] is what backward needs besides out; a
  // core without a backward may leave it as it is.
  virtual void forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) = 0;

  struct Gradients {
    Tensor dq, dk, dv;  // overwritten
  };
  virtual void backward(Exec& ex, const AttentionInput& in, ConstTensor dout, ConstTensor out,
                        ConstTensor lse, const Gradients& gradients) = 0;
};

// One context rank: the kernel.
class LocalAttention final : public AttentionCore {
 public:
  void forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) override;
  void backward(Exec& ex, const AttentionInput& in, ConstTensor dout, ConstTensor out,
                ConstTensor lse, const Gradients& gradients) override;
};

inline void LocalAttention::forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) {
  ops::attention(ex, {.q = in.q,
                      .k = in.k,
                      .v = in.v,
                      .sequences = in.sequences,
                      .scale = in.scale,
                      .mask = in.mask,
                      .dropout = in.dropout,
                      .out = out,
                      .lse = lse});
}

inline void LocalAttention::backward(Exec& ex, const AttentionInput& in, ConstTensor dout,
                                     ConstTensor out, ConstTensor lse, const Gradients& gradients) {
  ops::attention_backward(ex, {.dout = dout,
                               .q = in.q,
                               .k = in.k,
                               .v = in.v,
                               .out = out,
                               .lse = lse,
                               .sequences = in.sequences,
                               .scale = in.scale,
                               .mask = in.mask,
                               .dropout = in.dropout,
                               .dq = gradients.dq,
                               .dk = gradients.dk,
                               .dv = gradients.dv});
}

}  // namespace bev
