// Flags of reinforcement learning.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kReinforcementLearning[] = {
    {"--perform-rl-step"},
    {"--rl-prompts-per-eval", "N", "32"},
    {"--grpo-prompts-per-step", "N", "32"},
    {"--grpo-group-size", "N", "2"},
    {"--rl-generation-lag", "X"},
    {"--rl-max-inflight-requests", "N"},
    {"--rl-submission-granularity", "R|G|B", "B"},
    {"--rl-consumption-granularity", "R|G|B", "B"},
    {"--rl-durable-rollout-bank"},
    {"--rl-rollout-bank-dir", "TEXT"},
    {"--rl-rollout-bank-max-bytes", "N", "0"},
    {"--grpo-iterations", "N", "2"},
    {"--grpo-clamp-eps-lower", "X", "0.01"},
    {"--grpo-clamp-eps-upper", "X", "0.01"},
    {"--grpo-kl-beta", "X", "0.001"},
    {"--grpo-entropy-term-weight", "X", "0"},
    {"--grpo-filter-groups-with-same-reward"},
    {"--langrl-env-config", "TEXT"},
    {"--rl-default-temperature", "X", "1"},
    {"--rl-default-top-p", "X", "0"},
    {"--rl-default-top-k", "N", "-1"},
    {"--rl-offload-optimizer-during-inference"},
    {"--rl-kv-cache-management-mode", "persist|offload|recompute", "persist"},
    {"--rl-persist-cuda-graphs"},
    {"--no-rl-persist-cuda-graphs", "off"},
    {"--rl-partial-rollouts"},
    {"--no-rl-partial-rollouts", "off"},
    {"--rl-inference-logprobs-is-correction"},
    {"--no-rl-inference-logprobs-is-correction", "off"},
    {"--rl-importance-sampling-truncation-coef", "X"},
    {"--rl-use-sequence-packing"},
    {"--no-rl-use-sequence-packing", "off"},
    {"--rl-sequence-packing-max-sequences-per-bin", "N", "50"},
    {"--rl-sequence-packing-algo", "fifo|round-robin", "fifo"},
    {"--rl-training-cuda-graphs"},
    {"--no-rl-training-cuda-graphs", "off"},
    {"--rl-inference-tensor-model-parallel-size", "N"},
    {"--rl-inference-pipeline-model-parallel-size", "N"},
    {"--rl-inference-expert-model-parallel-size", "N"},
    {"--rl-inference-expert-tensor-model-parallel-size", "N"},
    {"--rl-inference-model-unified-memory-level", "0|1", "0"},
    {"--rl-offload-inference-model-weights-when-idle"},
    {"--no-rl-offload-inference-model-weights-when-idle", "off"},
    {"--refit-method", "nccl|gloo|nvshmem", "gloo"},
    {"--rl-verify-model-weights-swap"},
    {"--no-rl-verify-model-weights-swap", "off"},
    {"--rl-skip-bos-token"},
    {"--no-rl-skip-bos-token", "off"},
    {"--rl-profile"},
    {"--rl-profile-dir", "TEXT"},
    {"--rl-inference-parsers", "TEXT ..."},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> reinforcement_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"reinforcement learning", FlagClass::Later, "this version has no reinforcement learning",
       kReinforcementLearning},
  };
  return kTopics;
}

// Flags about learning from the outputs of another model.

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kDistillation[] = {
    {"--logits-save-top-k", "N"},
    {"--logits-save-top-p", "X"},
    {"--logits-save-top-p-min-k", "N", "1"},
    {"--logits-save-dir", "TEXT"},
    {"--logits-save-dtype", "fp16|bf16|fp32", "fp16"},
    {"--logits-load-dir", "TEXT"},
    {"--logits-load-decode-threads", "N", "4"},
    {"--logits-load-prefetch-factor", "N", "3"},
    {"--logits-load-msc-prefetch-depth", "N", "2"},
    {"--logits-load-kd-loss-alpha", "X", "1"},
    {"--logits-load-ignore-errors"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> distillation_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"distillation", FlagClass::Later, "this version learns from tokens only", kDistillation},
  };
  return kTopics;
}

}  // namespace bev
