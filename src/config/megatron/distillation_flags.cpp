// Flags about learning from the outputs of another model.
#include "config/megatron/flag_topics.h"

namespace bev {

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
