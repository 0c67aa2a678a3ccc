#include "ops/cuda/ops.h"

namespace bev {

const OpTable kCudaOps{
    .matmul = cuda::matmul,
    .norms_on_the_way = cuda::norms_on_the_way,
    .norm = cuda::norm,
    .residual_norm = cuda::residual_norm,
    .norm_backward = cuda::norm_backward,
    .dropout = cuda::dropout,
    .residual_add = cuda::residual_add,
    .attention = cuda::attention,
    .attention_backward = cuda::attention_backward,
    .rope = cuda::rope,
    .activate = cuda::activate,
    .activate_backward = cuda::activate_backward,
    .embedding = cuda::embedding,
    .embedding_backward = cuda::embedding_backward,
    .softmax_stats = cuda::softmax_stats,
    .merge_softmax_stats = cuda::merge_softmax_stats,
    .cross_entropy = cuda::cross_entropy,
    .copy = cuda::copy,
    .fill = cuda::fill,
    .squared_norm = cuda::squared_norm,
    .weighted_sum = cuda::weighted_sum,
    .hash_bits = cuda::hash_bits,
    .cache_write = cuda::cache_write,
    .decode_attention = cuda::decode_attention,
    .choose_tokens = cuda::choose_tokens,
    .combine = cuda::combine,
    .decide_update = cuda::decide_update,
    .adamw = cuda::adamw,
    .sgd = cuda::sgd,
};

}  // namespace bev
