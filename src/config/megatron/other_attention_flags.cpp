// Flags of layers that are no softmax attention over plain heads.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kLatentAttention[] = {
    {"--multi-latent-attention"},
    {"--q-lora-rank", "N"},
    {"--kv-lora-rank", "N", "32"},
    {"--qk-head-dim", "N", "128"},
    {"--qk-pos-emb-head-dim", "N", "64"},
    {"--v-head-dim", "N", "128"},
    {"--rotary-scaling-factor", "X", "1"},
    {"--mscale", "X", "1"},
    {"--mscale-all-dim", "X", "0"},
    {"--cache-mla-latents"},
};

constexpr MegatronFlag kSparseAndLinearAttention[] = {
    {"--experimental-attention-variant", "gdn|gdn2|dsa|gated_delta_net"},
    {"--dsa-indexer-n-heads", "N"},
    {"--dsa-indexer-head-dim", "N"},
    {"--dsa-indexer-topk", "N"},
    {"--dsa-indexer-topk-freq", "N", "1"},
    {"--dsa-indexer-skip-topk-offset", "N", "0"},
    {"--dsa-indexer-loss-coeff", "X"},
    {"--dsa-indexer-use-sparse-loss"},
    {"--dsa-kernel-backend", "none|tilelang|cudnn", "none"},
    {"--dsa-indexer-rope-interleaved"},
    {"--no-dsa-indexer-rotate-activation --disable-dsa-indexer-rotate-activation"},
    {"--no-dsa-indexer-scoring-relu --disable-dsa-indexer-scoring-relu"},
    {"--dsa-indexer-k-norm-epsilon", "X"},
    {"--dsa-indexer-k-norm-fp32"},
    {"--linear-conv-kernel-dim", "N", "4"},
    {"--linear-key-head-dim", "N", "128"},
    {"--linear-value-head-dim", "N", "128"},
    {"--linear-num-key-heads", "N", "16"},
    {"--linear-num-value-heads", "N", "32"},
    {"--gdp-num-householder", "N", "3"},
    {"--linear-attention-freq", "TEXT"},
};

constexpr MegatronFlag kStateSpaceAndHybridModels[] = {
    {"--is-hybrid-model"},
    {"--mamba-state-dim", "N", "128"},
    {"--mamba-head-dim", "N", "64"},
    {"--mamba-num-groups", "N", "8"},
    {"--mamba-num-heads", "N"},
    {"--mamba-training-ssm-states-dtype", "fp32|bf16"},
    {"--hybrid-layer-pattern", "TEXT"},
    {"--hybrid-override-pattern", "TEXT"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> other_attention_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"latent attention", FlagClass::Later, "this version has no multi-latent attention",
       kLatentAttention},
      {"sparse and linear attention", FlagClass::Later,
       "this version has softmax attention over all tokens or a window", kSparseAndLinearAttention},
      {"state-space and hybrid models", FlagClass::Later, "this version has transformers only",
       kStateSpaceAndHybridModels},
  };
  return kTopics;
}

}  // namespace bev
