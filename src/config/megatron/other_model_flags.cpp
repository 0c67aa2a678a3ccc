// Flags of BERT and T5 that are no fields.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kBert[] = {
    {"--pretrained-bert"},
};

constexpr MegatronFlag kBertEmbeddings[] = {
    {"--output-bert-embeddings"},
    {"--bert-embedder-type", "megatron|huggingface", "megatron"},
};

constexpr MegatronFlag kSentences[] = {
    {"--presplit-sentences"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> bert_t5_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"BERT", FlagClass::Later,
       "weights of Hugging Face come with `bevatron convert` and --load --finetune", kBert},
      {"embeddings of BERT", FlagClass::Later, "a training writes no embeddings of its samples",
       kBertEmbeddings},
      {"sentences", FlagClass::Noted,
       "token files hold sentences as `bevatron preprocess --split-sentences` has found them",
       kSentences},
  };
  return kTopics;
}

// Flags of models that search in a corpus.

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kRetrievalModels[] = {
    {"--ict-load", "TEXT"},
    {"--evidence-data-path", "TEXT"},
    {"--block-data-path", "TEXT"},
    {"--embedding-path", "TEXT"},
    {"--indexer-batch-size", "N", "128"},
    {"--indexer-log-interval", "N", "1000"},
    {"--retriever-seq-length", "N", "256"},
};

constexpr MegatronFlag kIctHeads[] = {
    {"--ict-head-size", "N"},
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
      {"retrieval models", FlagClass::Later,
       "this version trains a bi-encoder by the inverse cloze task and has no other retrieval",
       kRetrievalModels},
      {"heads of ICT", FlagClass::Noted,
       "the bi-encoder of Megatron-LM ignores it; --biencoder-projection-dim sets the size of "
       "embeddings",
       kIctHeads},
      {"Retro", FlagClass::Later, "this version has no Retro", kRetro},
  };
  return kTopics;
}

// Flags of vision models.

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kVisionModels[] = {
    {"--num-classes", "N", "1000"},
    {"--img-h", "N", "224"},
    {"--img-w", "N", "224"},
    {"--num-channels", "N", "3"},
    {"--patch-dim", "N", "16"},
    {"--classes-fraction", "X", "1"},
    {"--data-per-class-fraction", "X", "1"},
    {"--vision-pretraining"},
    {"--vision-pretraining-type", "classify|inpaint|dino", "classify"},
    {"--vision-backbone-type", "vit|mit|swin", "vit"},
    {"--swin-backbone-type", "tiny|base|h3", "tiny"},
    {"--mask-type", "random|row", "random"},
    {"--mask-factor", "X", "1"},
    {"--iter-per-epoch", "N", "1250"},
    {"--dino-local-img-size", "N", "96"},
    {"--dino-local-crops-number", "N", "10"},
    {"--dino-head-hidden-size", "N", "2048"},
    {"--dino-bottleneck-size", "N", "256"},
    {"--dino-freeze-last-layer", "X", "1"},
    {"--dino-norm-last-layer"},
    {"--dino-warmup-teacher-temp", "X", "0.04"},
    {"--dino-teacher-temp", "X", "0.07"},
    {"--dino-warmup-teacher-temp-epochs", "N", "30"},
    {"--img-dim", "N", "224"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> vision_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"vision models", FlagClass::Later, "this version has no vision models", kVisionModels},
  };
  return kTopics;
}

}  // namespace bev
