// A transformer block without backward, over the parameters of a Block. Its GEMMs normalise their
// operands, add the residual and may read weights before earlier work is done.
#pragma once

#include "model/block.h"

namespace bev {

class DecodeBlock {
 public:
  // The specification and the parameters must outlive this.
  DecodeBlock(const BlockSpec& spec, const BlockParams& params);

  // x, y [tokens, width]; y may alias x. REQUIRES: borders.tensor.rows_unchanged(), and no pending
  // work writes parameters.
  void forward(Exec& ex, const Borders& borders, const TextView& micro, ConstTensor x,
               Tensor y) const;

 private:
  void attention(Exec& ex, const Borders& borders, const TextView& micro, ConstTensor x,
                 Tensor sum) const;
  void mlp(Exec& ex, const TensorRegion& region, ConstTensor sum, Tensor y) const;

  const BlockSpec& spec_;
  BlockParams params_;
  int64_t heads_, kv_heads_;  // on this rank
};

}  // namespace bev
