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
    NormModule::Saved norm1, norm2;
    Tensor normed1, normed2;  // [tokens, width]; absent when they are recomputed
    Attention::Saved attention;
    Tensor sum;  // x + attention
    Mlp::Saved mlp;
  };

  Block(ParamStore& params, const ModelSpec& b, int64_t layer, const RopeTable& rope);

  // x, y [tokens, width]. Without y only what backward needs is computed; where there will be no
  // backward of this, y may be x itself.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor y,
               Saved& s) const;
  // What enters and leaves backward. A gradient of the residual stream is also that of the branch
  // added to it, and its sums over tokens are the gradient of that branch's bias: who writes the
  // gradient adds them up on the way.
  struct Gradients {
    ConstTensor dy;
    bool dy_summed;  // the sums of dy have been added to dy_sums()
    Tensor dx;       // may be dy itself
    Tensor dx_sums;  // the sums of dx are added; may be absent
  };
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, const Gradients& g,
                const Saved& s);
  int bucket() const { return bucket_; }
  // Where the sums of dy belong; absent where backward makes them from dy itself, or needs none.
  Tensor dy_sums(const ModelEnv& env) const;

 private:
  // Whether the branches join the residual stream as they are: rows neither dropped nor scattered.
  bool can_fuse_residual(const ModelEnv& env) const;
  ops::Dropout dropout(const ModelEnv& env, const MicroBatch& micro, uint64_t key) const;

  int bucket_;
  bool recompute_norms_;
  double dropout_;
  uint64_t attention_key_, mlp_key_;
  NormModule norm1_;
  Attention attention_;
  NormModule norm2_;
  Mlp mlp_;
};

}  // namespace bev
