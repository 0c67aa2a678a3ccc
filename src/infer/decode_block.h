// A transformer block without backward, over the parameters of a Block. Its GEMMs normalise their
// operands, add the residual and may read weights before earlier work is done.
#pragma once

#include "infer/kv_cache.h"
#include "model/block.h"

namespace bev {

// Inputs of a block besides its hidden state.
struct DecodeInputs {
  const TextView& micro;
  ConstTensor bias{};  // of self attention, optional: as the attention core takes it
  const CachedCrossAttention* cross = nullptr;  // of a block with cross attention
};

class DecodeBlock {
 public:
  // The specification and the parameters must outlive this.
  DecodeBlock(const BlockSpec& spec, const BlockParams& params);

  // x, y [tokens, width]; y may alias x. REQUIRES: borders.tensor.rows_unchanged(), and no pending
  // work writes parameters.
  void forward(Exec& ex, const Borders& borders, const DecodeInputs& in, ConstTensor x,
               Tensor y) const;

  bool has_cross_attention() const { return params_.cross.has_value(); }
  // Writes the keys and values of an encoder's output [tokens, width] for cross attention.
  void cache_context(Exec& ex, const Borders& borders, ConstTensor context,
                     const CachedCrossAttention& cross) const;

 private:
  void attention(Exec& ex, const Borders& borders, const DecodeInputs& in, ConstTensor x,
                 Tensor sum) const;
  void cross_attention(Exec& ex, const Borders& borders, const CachedCrossAttention& cross,
                       ConstTensor x, Tensor sum) const;
  void mlp(Exec& ex, const TensorRegion& region, ConstTensor sum, Tensor y) const;

  const BlockSpec& spec_;
  BlockParams params_;
  int64_t heads_, kv_heads_;  // on this rank
};

}  // namespace bev
