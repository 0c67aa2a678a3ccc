// Flags about optimizers, groups of parameters and batch sizes.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kOtherOptimizers[] = {
    {"--muon-momentum", "X", "0.9"},
    {"--muon-no-split-qkv"},
    {"--muon-nesterov"},
    {"--muon-scale-mode", "spectral|unit_rms_norm|shape_scaling", "spectral"},
    {"--muon-fp32-matmul-prec", "low|medium|high", "medium"},
    {"--muon-coefficient-type", "TEXT", "quintic"},
    {"--muon-num-ns-steps", "N", "5"},
    {"--muon-tp-mode", "blockwise|duplicated|distributed", "duplicated"},
    {"--muon-use-syrk"},
    {"--muon-extra-scale-factor", "X", "1"},
    {"--muon-scalar-optimizer", "adam|lion", "adam"},
    {"--lion-beta1", "X", "0.95"},
    {"--lion-beta2", "X", "0.98"},
};

constexpr MegatronFlag kGroupsOfParameters[] = {
    {"--apply-wd-to-qk-layernorm"},
    {"--no-weight-decay-cond-type", "apply_wd_to_qk_layernorm"},
    {"--dump-param-to-param-group-map", "TEXT"},
    {"--decoupled-lr", "X"},
    {"--decoupled-min-lr", "X"},
    {"--freeze-all-layers"},
    {"--head-lr-mult", "X", "1"},
};

constexpr MegatronFlag kBatchSizeOverTime[] = {
    {"--step-batch-size-schedule", "TEXT"},
    {"--decrease-batch-size-if-needed"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> optimizer_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"other optimizers", FlagClass::Later, "this version has adam (AdamW), sgd and LAMB",
       kOtherOptimizers},
      {"groups of parameters", FlagClass::Later,
       "all parameters, the embedding and the output layer too, have one learning rate, and "
       "matrices and embeddings one weight decay",
       kGroupsOfParameters},
      {"batch size over time", FlagClass::Later,
       "the batch is constant, or rises in equal steps as --rampup-batch-size START INCREMENT "
       "SAMPLES says",
       kBatchSizeOverTime},
  };
  return kTopics;
}

}  // namespace bev
