// Flags that change the model itself.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kOtherLayers[] = {
    {"--softmax-type", "vanilla|off-by-one|learnable", "vanilla"},
    {"--apply-residual-connection-post-layernorm"},
    {"--glu-linear-offset", "X", "0"},
    {"--activation-func-clamp-value", "X"},
    {"--qk-l2-norm"},
    {"--qk-clip"},
    {"--qk-clip-alpha", "X", "0.5"},
    {"--qk-clip-threshold", "X", "100"},
    {"--attention-output-gate"},
    {"--enable-mhc-connections"},
    {"--mhc-num-residual-streams", "N", "4"},
    {"--mhc-sinkhorn-iterations", "N", "20"},
    {"--mhc-init-gating-factor", "X", "0.01"},
    {"--mhc-recompute-layer-num", "N"},
    {"--window-attn-skip-freq", "TEXT"},
    {"--quick-geglu"},
    {"--heterogeneous-layers-config-path", "TEXT"},
    {"--heterogeneous-layers-config-encoded-json", "TEXT"},
    {"--spec", "TEXT ..."},
    {"--model-spec", "TEXT TEXT"},
};

constexpr MegatronFlag kNormWeights[] = {
    {"--apply-layernorm-1p"},
};

constexpr MegatronFlag kOtherPositions[] = {
    {"--rotary-interleaved"},
    {"--mrope-section", "N ..."},
    {"--yarn-original-max-position-embeddings", "N"},
    {"--yarn-beta-fast", "X"},
    {"--yarn-beta-slow", "X"},
    {"--yarn-correction-range-round-to-int"},
    {"--no-yarn-correction-range-round-to-int"},
    {.flag = "--rotary-seq-len-interpolation-factor", .takes = "N", .also = "1"},
    {"--no-rope-freq", "TEXT"},
    {"--rope-type", "rope|yarn"},
};

constexpr MegatronFlag kInitialValues[] = {
    {"--no-initialization"},
    {"--embedding-init-method-std", "X"},
    {"--use-mup"},
    {"--mup-width-mult", "X", "1"},
    {"--mup-base-hidden-size", "N"},
    {"--mup-embedding-mult", "X", "1"},
    {"--mup-output-mult", "X", "1"},
    {"--mup-base-head-dim", "X"},
    {"--mup-attn-scale-power", "X", "1"},
    {"--data-parallel-random-init"},
    {"--init-method-xavier-uniform"},
};

constexpr MegatronFlag kVocabularySize[] = {
    {"--padded-vocab-size", "N"},
};

constexpr MegatronFlag kSeveralPredictionsPerToken[] = {
    {"--mtp-standalone"},
    {"--mtp-num-layers", "N"},
    {"--mtp-loss-scaling-factor", "X", "0.1"},
    {"--mtp-use-repeated-layer"},
    {"--mtp-detach-heads"},
    {"--mtp-hsm"},
    {"--mtp-hybrid-override-pattern", "TEXT"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> model_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"other layers", FlagClass::Later,
       "this version has pre-norm blocks of attention and MLP, without this variant", kOtherLayers},
      {"weights of norms", FlagClass::Later,
       "a norm multiplies by its weight, not by 1 + weight; without the flag the model is the "
       "same, "
       "but a weight in 16 bits is rounded more",
       kNormWeights},
      {"other positions", FlagClass::Later,
       "this version has learned, rotary, relative and no positions, and Llama 3's stretching of "
       "rotary ones",
       kOtherPositions},
      {"initial values", FlagClass::Later,
       "initial weights are normal with model.init_std, output projections divided by sqrt(2 x "
       "layers)",
       kInitialValues},
      {"vocabulary size", FlagClass::Later,
       "the vocabulary is padded to a multiple of model.vocab_multiple", kVocabularySize},
      {"several predictions per token", FlagClass::Later,
       "this version predicts the next token only", kSeveralPredictionsPerToken},
  };
  return kTopics;
}

}  // namespace bev
