// Flags about token files, samples and tokenizers.
#include "config/megatron/megatron_flags.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kOtherSourcesOfSamples[] = {
    {"--per-dataset-sequences-path", "TEXT"},
    {"--object-storage-cache-path", "TEXT"},
    {"--mid-level-dataset-surplus", "X", "0.005"},
    {"--shuffle"},
    {"--train-data", "TEXT ..."},
    {"--use-npy-data-loader"},
    {"--val-data-path", "TEXT"},
    {"--input-data-sizes-file", "TEXT", "sizes.txt"},
    {"--delim", "TEXT", ","},
    {"--text-key", "TEXT", "sentence"},
    {"--eval-text-key", "TEXT"},
    {"--valid-data", "TEXT ..."},
    {"--test-data", "TEXT ..."},
    {"--loose-json"},
    {"--use-tfrecords"},
};

constexpr MegatronFlag kOtherOrdersOfSamples[] = {
    {"--sample-rate", "X", "1"},
};

constexpr MegatronFlag kRanksOfSamples[] = {
    {"--no-data-sharding"},
};

constexpr MegatronFlag kOtherSamples[] = {
    {"--allow-ambiguous-pad-tokens"},
    {"--fim-data"},
    {"--fim-rate", "X", "0.5"},
    {"--fim-spm-rate", "X", "0.5"},
    {"--fim-split-sample", "TEXT"},
    {"--fim-fragment-rate", "X"},
    {"--fim-no-prefix", "TEXT"},
    {"--fim-prefix-token", "TEXT", "<fim_prefix>"},
    {"--fim-middle-token", "TEXT", "<fim_middle>"},
    {"--fim-suffix-token", "TEXT", "<fim_suffix>"},
    {"--fim-pad-token", "TEXT", "<fim_pad>"},
    {"--fim-eod-token", "TEXT", "<|endoftext|>"},
    {"--chat-template", "TEXT"},
    {"--sft"},
    {"--sft-tokenizer-prompt-format", "TEXT", "nemotron-h-aligned"},
};

constexpr MegatronFlag kIndexFiles[] = {
    {"--data-cache-path", "TEXT"},
};

constexpr MegatronFlag kReadingOfFiles[] = {
    {"--dataloader-fast-cache-load"},
    {"--dataloader-defer-npy-index-mmap"},
    {"--num-workers", "N", "2"},
    {"--no-create-attention-mask-in-dataloader"},
    {"--num-dataset-builder-threads", "N", "1"},
    {"--enable-msc"},
    {"--disable-msc"},
    {"--mmap-warmup"},
    {"--lazy-loader"},
    {"--cache-dir", "TEXT"},
};

constexpr MegatronFlag kFormatOfTokenFiles[] = {
    {.flag = "--data-impl", .takes = "lazy|cached|mmap|infer", .standard = "infer", .also = "mmap"},
};

constexpr MegatronFlag kTokenizers[] = {
    {"--tokenizer-metadata", "TEXT"},
    {"--tokenizer-special-tokens", "TEXT ..."},
    {"--tiktoken-pattern", "v1|v2"},
    {"--tiktoken-num-special-tokens", "N", "1000"},
    {"--tokenizer-sentencepiece-legacy"},
    {"--no-tokenizer-sentencepiece-ignore-extra-whitespaces --disable-tokenizer-sentencepiece-ignore-extra-whitespaces"},
    {"--tokenizer-hf-no-use-fast"},
    {"--trust-remote-code"},
    {"--use-gigatoken"},
    {"--tokenizer-model-type", "TEXT", "bert-large-uncased"},
    {"--tokenizer-path", "TEXT", "tokenizer.model"},
};

constexpr MegatronFlag kPaddingTokens[] = {
    {"--null-tokenizer-pad-id", "N", "-1"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> data_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"other sources of samples", FlagClass::Later,
       "train reads token files, which `bevatron preprocess` makes of a corpus: --data-path "
       "PREFIX (data.path, data.train_path, data.valid_path, data.test_path)",
       kOtherSourcesOfSamples},
      {"other orders of samples", FlagClass::Later,
       "windows of the training text come in a shuffled order, each once per epoch",
       kOtherOrdersOfSamples},
      {"other samples", FlagClass::Later,
       "a sample is a piece of the documents, one after the other", kOtherSamples},
      {"samples of ranks", FlagClass::Noted,
       "one rank reads all samples, and then both ways give the same", kRanksOfSamples},
      {"index files", FlagClass::Noted,
       "the order of samples is computed when it is needed; no index files are written or read",
       kIndexFiles},
      {"reading of files", FlagClass::Noted,
       "token files are read when they are needed; data.mmap says how", kReadingOfFiles},
      {"format of token files", FlagClass::Later,
       "token files are the pair .bin and .idx that is mapped into memory", kFormatOfTokenFiles},
      {"tokenizers", FlagClass::Noted,
       "tokens are read as they stand in the files; model.vocab and data.eod say what matters of "
       "their tokenizer",
       kTokenizers},
      {"padding tokens", FlagClass::Later, "samples are whole, so nothing is padded",
       kPaddingTokens},
  };
  return kTopics;
}

}  // namespace bev
