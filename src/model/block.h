// A pre-norm transformer block: x + attention(norm(x)), then + mlp(norm(.)).
#pragma once

#include "model/attention.h"
#include "model/mlp.h"
#include "model/norm.h"

namespace bev {

class Block {
 public:
  struct Saved {
    ConstTensor x;  // the block's input
    NormLayer::Saved norm1, norm2;
    Tensor normed1, normed2;  // [tokens, width]; absent when they are recomputed
    Attention::Saved attention;
    Tensor sum;  // x + attention
    Mlp::Saved mlp;
  };

  Block(ParamStore& params, const Blueprint& b, int64_t layer, const RopeTable& rope);

  // x, y [tokens, width]
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor y,
               Saved& s) const;
  // dx may be dy itself.
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor dy, Tensor dx,
                const Saved& s);

 private:
  void run(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor y,
           Saved& s) const;
  void run_backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor dy, Tensor dx,
                    const Saved& s);
  ops::Dropout dropout(const ModelEnv& env, const MicroBatch& micro, uint64_t key) const;

  bool recompute_all_;  // keep the input only, run forward again before backward
  bool recompute_norms_;
  double dropout_;
  uint64_t attention_key_, mlp_key_;
  NormLayer norm1_;
  Attention attention_;
  NormLayer norm2_;
  Mlp mlp_;
};

}  // namespace bev
