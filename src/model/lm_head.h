// Hidden states to loss. Logits exist for a chunk of tokens at a time: the chunk's loss, the
// gradient of its hidden states and its part of the weight gradient are computed before the next
// chunk begins.
#pragma once

#include "data/batch.h"
#include "model/env.h"
#include "model/model_spec.h"
#include "ops/cross_entropy.h"

namespace bev {

// Tokens whose logits exist at a time.
int64_t head_chunk(const Config& config);

class LmHead {
 public:
  // Tied: shares the table of the token embedding, or holds a copy of it where that is on another
  // stage.
  LmHead(ParamStore& params, const ModelSpec& b);

  // Adds the token losses to env.loss. With dx (training) also adds the weight gradient and writes
  // the gradient of x. x, dx [tokens, width]: of this rank between regions. Every tensor rank adds
  // the losses of all tokens.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor x, Tensor dx);

  int bucket() const { return weight_.bucket; }

  // logits [tokens, vocab], of the classes held here.
  void logits(Exec& ex, const ModelEnv& env, ConstTensor x, Tensor logits) const;

 private:
  // stats: where the statistics of the rows shall be; may be absent.
  void losses(Exec& ex, ModelEnv& env, const ops::CrossEntropy& rows, Tensor stats) const;
  // The rows of the matrix that take part: those in front.
  ConstTensor weight_in_use(const ModelEnv& env) const;

  int64_t chunk_, classes_;
  double smoothing_, z_loss_;
  bool shares_table_;  // with the token embedding of this stage
  Param& weight_;
};

}  // namespace bev
