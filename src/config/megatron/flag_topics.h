// The tables of Megatron's flags, one file per subject. Used by megatron_flags.cpp only.
#pragma once

#include "config/megatron/megatron_flags.h"

namespace bev {

std::span<const FlagTopic> model_topics();
std::span<const FlagTopic> other_attention_topics();
std::span<const FlagTopic> experts_topics();
std::span<const FlagTopic> precision_topics();
std::span<const FlagTopic> parallel_topics();
std::span<const FlagTopic> kernels_topics();
std::span<const FlagTopic> optimizer_topics();
std::span<const FlagTopic> run_topics();
std::span<const FlagTopic> checkpoints_topics();
std::span<const FlagTopic> data_topics();
std::span<const FlagTopic> logging_topics();
std::span<const FlagTopic> distillation_topics();
std::span<const FlagTopic> bert_t5_topics();
std::span<const FlagTopic> retrieval_topics();
std::span<const FlagTopic> vision_topics();
std::span<const FlagTopic> reinforcement_topics();
std::span<const FlagTopic> inference_topics();

}  // namespace bev
