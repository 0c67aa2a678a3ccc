#include "parallel/attention_core.h"

namespace bev {

void LocalAttention::forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) {
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

void LocalAttention::backward(Exec& ex, const AttentionInput& in, ConstTensor dout, ConstTensor out,
                              ConstTensor lse, const Gradients& gradients) {
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
