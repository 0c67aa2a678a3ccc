// The cuda backend: f32, bf16 and f16 in GPU memory, sums in f32 or better. Every op is ordered on
// exec.stream and returns before it is done.
#pragma once

#include "ops/op_table.h"

namespace bev::cuda {

void matmul(Exec&, const ops::Matmul&);
bool norms_on_the_way(Exec&, const ops::Matmul&);
void norm(Exec&, const ops::Norm&);
void residual_norm(Exec&, const ops::ResidualNorm&);
void norm_backward(Exec&, const ops::NormBackward&);
void dropout(Exec&, const ops::DropoutApply&);
void residual_add(Exec&, const ops::ResidualAdd&);
void attention(Exec&, const ops::Attention&);
void attention_backward(Exec&, const ops::AttentionBackward&);
void rope(Exec&, const ops::Rope&);
void activate(Exec&, const ops::Activate&);
void activate_backward(Exec&, const ops::ActivateBackward&);
void embedding(Exec&, const ops::Embedding&);
void embedding_backward(Exec&, const ops::EmbeddingBackward&);
void softmax_stats(Exec&, const ops::SoftmaxStats&);
void merge_softmax_stats(Exec&, const ops::MergeSoftmaxStats&);
void cross_entropy(Exec&, const ops::CrossEntropy&);
void copy(Exec&, const ops::Copy&);
void fill(Exec&, const ops::Fill&);
void squared_norm(Exec&, const ops::SquaredNorm&);
void weighted_sum(Exec&, const ops::WeightedSum&);
void hash_bits(Exec&, const ops::HashBits&);
void cache_write(Exec&, const ops::CacheWrite&);
void decode_attention(Exec&, const ops::DecodeAttention&);
void choose_tokens(Exec&, const ops::ChooseTokens&);
void combine(Exec&, const ops::Combine&);
void decide_update(Exec&, const ops::DecideUpdate&);
void adamw(Exec&, const ops::AdamW&);
void sgd(Exec&, const ops::Sgd&);

}  // namespace bev::cuda
