#include "bench/op_cases.h"

#include <array>

namespace bev {

namespace {

constexpr std::array kBenchedOps{
    BenchedOp{"matmul", matmul_cases},
    BenchedOp{"embedding", embedding_cases},
    BenchedOp{"norm", norm_cases},
    BenchedOp{"rope", rope_cases},
    BenchedOp{"attention", attention_cases},
    BenchedOp{"residual_norm", residual_norm_cases},
    BenchedOp{"activate", activate_cases},
    BenchedOp{"residual_add", residual_add_cases},
    BenchedOp{"softmax_stats", softmax_stats_cases},
    BenchedOp{"cross_entropy", cross_entropy_cases},
    BenchedOp{"weighted_sum", weighted_sum_cases},
    BenchedOp{"norm_backward", norm_backward_cases},
    BenchedOp{"dropout", dropout_cases},
    BenchedOp{"activate_backward", activate_backward_cases},
    BenchedOp{"attention_backward", attention_backward_cases},
    BenchedOp{"fill", fill_cases},
    BenchedOp{"embedding_backward", embedding_backward_cases},
    BenchedOp{"squared_norm", squared_norm_cases},
    BenchedOp{"decide_update", decide_update_cases},
    BenchedOp{"adamw", adamw_cases},
    BenchedOp{"sgd", sgd_cases},
};

}  // namespace

std::span<const BenchedOp> benched_ops() { return kBenchedOps; }

}  // namespace bev
