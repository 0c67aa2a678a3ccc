// Forward of a rank's stage without backward: hidden states, logits and losses of single tokens.
#pragma once

#include <span>
#include <vector>

#include "infer/decode_block.h"
#include "pipeline/rank_model.h"

namespace bev {

// All but `hidden` only of the stage with the head.
struct InferenceOutputs {
  // The residual stream before the first and after each block; empty, or blocks + 1 tensors
  // [tokens, width].
  std::span<const Tensor> hidden{};
  Tensor final_norm{};       // [tokens, width], optional
  ConstTensor logit_rows{};  // i32 [rows]: the tokens whose logits are computed; absent: all
  Tensor logits{};           // [rows, classes on this rank], optional
  // Losses and statistics leave out the padding of the vocabulary. REQUIRES: every tensor rank
  // holds some ids.
  Tensor token_losses{};  // [tokens] of the accumulation type, optional
  Tensor token_stats{};   // [tokens, ops::kSoftmaxStats] of the accumulation type, optional
};

// How the decoder of an encoder-decoder attends to what is cached.
struct DecoderCache {
  const CachedCrossAttention* cross = nullptr;
  int64_t places = 0;  // of one sequence in the cache, at least
};

class InferenceStage {
 public:
  // REQUIRES: one stage per rank, parameters that are not sharded over data ranks; a model of one
  // hidden state, or an encoder-decoder with a cache. The model, the attention and the cache must
  // outlive this.
  InferenceStage(const RankModel& model, AttentionCore& attention, const DecoderCache& cache = {});

  // Caches the keys and values of an encoder's output for the cross attention of forward().
  void encode(Exec& ex, const TextView& text);

  // `input`: the hidden state of the stage before, absent on the first stage. `output`: absent on
  // the last stage. In an encoder-decoder `micro` has one token of each decoder sequence.
  // REQUIRES: no pending work writes parameters; rows are not sharded between regions.
  void forward(Exec& ex, const TextView& micro, ConstTensor input, Tensor output,
               const InferenceOutputs& outputs);

 private:
  // The bias of a decoder's newest tokens, [heads, places], in scratch; absent without relative
  // positions.
  ConstTensor decoder_bias(Exec& ex) const;
  // The logits of the first classes of this rank, as many as `logits` has columns.
  void logits(Exec& ex, ConstTensor x, Tensor logits) const;
  void score(Exec& ex, const TextView& micro, ConstTensor x, const InferenceOutputs& outputs);

  const Stage& stage_;
  int64_t width_, vocab_;
  DType dtype_;
  int64_t chunk_ = 0;  // tokens whose logits exist at the same time
  ModelEnv env_;
  DecoderCache cache_;
  std::vector<DecodeBlock> blocks_;
  size_t encoder_blocks_ = 0;  // the first of blocks_
};

}  // namespace bev
