// Attention that remembers: what a prompt's tokens see is among themselves, and is kept for the
// tokens that follow one by one.
#pragma once

#include "infer/kv_cache.h"
#include "parallel/attention_core.h"

namespace bev {

class CachedAttention final : public AttentionCore {
 public:
  // `first_layer`: of the model, the first one that the cache is for. The cache must outlive this.
  CachedAttention(KvCache& cache, int64_t first_layer) : cache_(cache), first_layer_(first_layer) {}

  // From now on whole prompts pass. places i32 [tokens], as CacheWrite has them; absent: nothing is
  // kept.
  void begin_prompts(ConstTensor places) {
    is_prompt_ = true;
    places_ = places;
  }
  // From now on one token of each sequence passes; as DecodeAttention has them.
  void begin_tokens(ConstTensor lengths, ConstTensor pages) {
    is_prompt_ = false;
    lengths_ = lengths;
    pages_ = pages;
  }

  void forward(Exec& ex, const AttentionInput& in, Tensor out, Tensor lse) override;
  void backward(Exec& ex, const AttentionInput& in, ConstTensor dout, ConstTensor out,
                ConstTensor lse, const Gradients& gradients) override;

 private:
  KvCache& cache_;
  int64_t first_layer_;
  bool is_prompt_ = true;
  ConstTensor places_{}, lengths_{}, pages_{};
  LocalAttention local_;
};

}  // namespace bev
