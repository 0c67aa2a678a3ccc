#include "ops/reference/ops.h"

namespace bev {

const OpTable kReferenceOps{
    .matmul = reference::matmul,
    .norms_on_the_way = [](Exec&, const ops::Matmul&) { return false; },
    .norm = reference::norm,
    .residual_norm = reference::residual_norm,
    .norm_backward = reference::norm_backward,
    .dropout = reference::dropout,
    .residual_add = reference::residual_add,
    .attention = reference::attention,
    .attention_backward = reference::attention_backward,
    .rope = reference::rope,
    .activate = reference::activate,
    .activate_backward = reference::activate_backward,
    .embedding = reference::embedding,
    .embedding_backward = reference::embedding_backward,
    .softmax_stats = reference::softmax_stats,
    .merge_softmax_stats = reference::merge_softmax_stats,
    .cross_entropy = reference::cross_entropy,
    .copy = reference::copy,
    .fill = reference::fill,
    .squared_norm = reference::squared_norm,
    .weighted_sum = reference::weighted_sum,
    .hash_bits = reference::hash_bits,
    .cache_write = reference::cache_write,
    .decode_attention = reference::decode_attention,
    .choose_tokens = reference::choose_tokens,
    .combine = reference::combine,
    .decide_update = reference::decide_update,
    .adamw = reference::adamw,
    .sgd = reference::sgd,
};

}  // namespace bev
