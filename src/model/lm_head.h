// Hidden states to loss. Logits exist for a chunk of tokens: the loss of the chunk, the gradient of
// its hidden states and its part of the weight gradient are computed before the next chunk starts.
#pragma once

#include "data/batch.h"
#include "model/env.h"
#include "ops/cross_entropy.h"

namespace bev {

class LmHead {
 public:
  LmHead(ParamStore& params, const LmHeadSpec& spec);

  int bucket() const { return weight_.bucket; }
  const Param& weight() const { return weight_; }  // [vocab on this rank, width]

  // Adds the token losses to env.losses. With dx (training) also accumulates the weight gradient
  // and writes the gradient of x. x, dx [tokens, width]: of this rank between regions. Every tensor
  // rank adds the losses of all tokens.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor dx) const;

 private:
  int loss_;  // in the list of the model
  int64_t chunk_, classes_;
  double smoothing_, z_loss_;
  Param& weight_;
};

}  // namespace bev
