// Flags of BERT and T5.
#include "config/megatron/flag_topics.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kBert[] = {
    {"--bert-no-binary-head"},
    {"--mask-prob", "X", "0.15"},
    {"--short-seq-prob", "X", "0.1"},
    {"--output-bert-embeddings"},
    {"--bert-embedder-type", "megatron|huggingface", "megatron"},
    {"--pretrained-bert"},
    {"--intermediate-size", "N"},
    {"--presplit-sentences"},
    {"--max-preds-per-seq", "N"},
};

constexpr MegatronFlag kT5[] = {
    {"--decoder-num-layers", "N"},
    {"--decoder-seq-length", "N"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> bert_t5_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"BERT", FlagClass::Later, "this version has no BERT", kBert},
      {"T5", FlagClass::Later, "this version has no encoder-decoder", kT5},
  };
  return kTopics;
}

}  // namespace bev
