// Flags of mixtures of experts.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kMixtureOfExperts[] = {
    {"--expert-model-parallel-size", "N", "1"},
    {"--expert-tensor-parallel-size", "N"},
    {"--expert-tensor-parallel-num-weight-shards", "N"},
    {"--moe-shared-expert-intermediate-size", "N"},
    {"--moe-shared-expert-gate"},
    {"--moe-shared-expert-glu-interleave-size", "N"},
    {"--moe-ffn-hidden-size", "N"},
    {"--moe-router-topk", "N", "2"},
    {"--moe-enable-routing-replay"},
    {"--moe-router-padding-for-quantization"},
    {"--moe-router-padding-for-fp8"},
    {"--moe-router-num-groups", "N"},
    {"--moe-router-group-topk", "N"},
    {"--moe-router-pre-softmax"},
    {"--moe-router-topk-scaling-factor", "X"},
    {"--moe-router-score-function", "softmax|sigmoid|sqrtsoftplus", "softmax"},
    {"--moe-router-dtype", "fp32|fp64"},
    {"--moe-router-enable-expert-bias"},
    {"--moe-router-bias-update-rate", "X", "0.001"},
    {"--moe-router-quantile-balancing-ema", "X", "0"},
    {"--moe-router-force-load-balancing"},
    {"--moe-router-force-biased", "X"},
    {"--moe-z-loss-coeff", "X"},
    {"--moe-input-jitter-eps", "X"},
    {"--moe-expert-capacity-factor", "X"},
    {"--moe-pad-expert-input-to-capacity"},
    {"--moe-token-drop-policy", "probs|position", "probs"},
    {"--moe-apply-probs-on-input"},
    {"--moe-latent-size", "N"},
    {"--moe-dispatch-fwd-dtype", "bf16|mxfp8", "bf16"},
    {"--moe-combine-bwd-dtype", "bf16|mxfp8", "bf16"},
    {"--moe-mlp-glu-interleave-size", "N"},
    {"--moe-expert-rank-capacity-factor", "X"},
    {"--save-tokens-per-expert-interval", "N"},
    {"--num-experts", "N"},
    {"--moe-layer-freq", "TEXT", "1"},
    {"--moe-use-upcycling"},
    {"--moe-router-load-balancing-type", "aux_loss|seq_aux_loss|global_aux_loss|sinkhorn|quantile_balancing|none ...", "aux_loss"},
    {"--moe-aux-loss-coeff", "X ...", "0"},
    {"--moe-upcycling-granularity", "N", "1"},
    {"--moe-routing-trace-path", "TEXT"},
    {"--moe-routing-trace-max-training-iters", "N"},
    {"--moe-routing-trace-capture-logits"},
    {"--moe-routing-trace-capture-hidden-states"},
    {"--moe-routing-trace-dump-weights"},
    {"--expert-parallel"},
};

constexpr MegatronFlag kKernelsAndTrafficOfExperts[] = {
    {"--overlap-moe-expert-parallel-comm"},
    {"--overlap-dispatch-backward-with-experts-wgrad"},
    {"--ep-overlap-early-attn-memory-release"},
    {"--high-priority-a2a-comm-stream"},
    {"--moe-shared-expert-overlap"},
    {"--use-grouped-gemm-for-shared-expert"},
    {"--use-grouped-gemm-for-dense-mlp"},
    {"--moe-grouped-gemm"},
    {"--moe-use-grouped-tensor"},
    {"--moe-single-grouped-weight"},
    {"--moe-single-grouped-bias"},
    {"--moe-token-dispatcher-type", "allgather|alltoall|flex", "allgather"},
    {"--moe-enable-deepep"},
    {"--moe-flex-dispatcher-backend", "deepep|hybridep|ncclep", "deepep"},
    {"--moe-permute-fusion-into-hybridep"},
    {"--moe-hybridep-pad-uneven-dispatch-inputs"},
    {"--moe-per-layer-logging"},
    {"--moe-pad-experts-for-cuda-graph-inference"},
    {"--moe-layer-recompute"},
    {"--moe-permute-fusion"},
    {"--moe-router-fusion"},
    {"--moe-flex-dispatcher-num-sms", "N"},
    {"--moe-deepep-num-sms", "N"},
    {"--moe-hybridep-num-sms", "N"},
    {"--moe-hybridep-num-blocks-permute", "N"},
    {"--moe-hybridep-num-blocks-unpermute", "N"},
    {"--moe-hybridep-num-sms-preprocessing", "N", "108"},
    {"--moe-ncclep-zero-copy"},
    {"--moe-paged-stash"},
    {"--moe-paged-stash-page-size", "N", "64"},
    {"--moe-paged-stash-buffer-size-factor-cuda", "X", "1.1"},
    {"--moe-paged-stash-buffer-size-factor-cpu", "X", "0"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> experts_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"mixture of experts", FlagClass::Later, "this version has no mixture of experts",
       kMixtureOfExperts},
      {"kernels and traffic of experts", FlagClass::Noted,
       "without experts there is nothing to choose", kKernelsAndTrafficOfExperts},
  };
  return kTopics;
}

}  // namespace bev
