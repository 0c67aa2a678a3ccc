// Flags of models that search in a corpus.
#include "config/megatron/flag_topics.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kRetrievalModels[] = {
    {"--ict-head-size", "N"},
    {"--biencoder-projection-dim", "N", "0"},
    {"--biencoder-shared-query-context-model"},
    {"--ict-load", "TEXT"},
    {"--bert-load", "TEXT"},
    {"--titles-data-path", "TEXT"},
    {"--query-in-block-prob", "X", "0.1"},
    {"--use-one-sent-docs"},
    {"--evidence-data-path", "TEXT"},
    {"--retriever-report-topk-accuracies", "N ..."},
    {"--retriever-score-scaling"},
    {"--block-data-path", "TEXT"},
    {"--embedding-path", "TEXT"},
    {"--indexer-batch-size", "N", "128"},
    {"--indexer-log-interval", "N", "1000"},
    {"--retriever-seq-length", "N", "256"},
};

constexpr MegatronFlag kRetro[] = {
    {"--retro-workdir", "TEXT"},
    {"--retro-add-retriever"},
    {"--retro-cyclic-train-iters", "N"},
    {"--retro-encoder-layers", "N", "2"},
    {"--retro-encoder-hidden-dropout", "X", "0.1"},
    {"--retro-encoder-attention-dropout", "X", "0.1"},
    {"--retro-num-neighbors", "N", "2"},
    {"--retro-num-retrieved-chunks", "N", "2"},
    {"--retro-return-doc-ids"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> retrieval_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"retrieval models", FlagClass::Later, "this version has no bi-encoder and no retrieval",
       kRetrievalModels},
      {"Retro", FlagClass::Later, "this version has no Retro", kRetro},
  };
  return kTopics;
}

}  // namespace bev
