#include "ops/cpu/ops.h"

namespace bev {

const OpTable kCpuOps{
    .matmul = cpu::matmul,
    .norms_on_the_way = [](Exec&, const ops::Matmul&) { return false; },
    .norm = cpu::norm,
    .residual_norm = cpu::residual_norm,
    .norm_backward = cpu::norm_backward,
    .dropout = cpu::dropout,
    .residual_add = cpu::residual_add,
    .attention = cpu::attention,
    .attention_backward = cpu::attention_backward,
    .rope = cpu::rope,
    .activate = cpu::activate,
    .activate_backward = cpu::activate_backward,
    .embedding = cpu::embedding,
    .embedding_backward = cpu::embedding_backward,
    .softmax_stats = cpu::softmax_stats,
    .merge_softmax_stats = cpu::merge_softmax_stats,
    .cross_entropy = cpu::cross_entropy,
    .copy = cpu::copy,
    .fill = cpu::fill,
    .squared_norm = cpu::squared_norm,
    .weighted_sum = cpu::weighted_sum,
    .hash_bits = cpu::hash_bits,
    .cache_write = cpu::cache_write,
    .decode_attention = cpu::decode_attention,
    .choose_tokens = cpu::choose_tokens,
    .combine = cpu::combine,
    .decide_update = cpu::decide_update,
    .adamw = cpu::adamw,
    .sgd = cpu::sgd,
};

}  // namespace bev
