// The flags by which a verb is told its tokenizer, under Megatron-LM's names.
#pragma once

#include <algorithm>
#include <array>

#include "app/cli/cli_flags.h"
#include "text/open_tokenizer.h"

namespace bev::app {

inline constexpr std::array<OwnFlag, 10> kTokenizerFlags{{
    {"--tokenizer", "PATH",
     "a tokenizer.json, .model or vocab.txt, or a folder with one: what it is, is seen"},
    {"--tokenizer-type", "NAME",
     "byte, null, gpt2, huggingface, bert-lower, bert-cased, sentencepiece, gpt-sentencepiece, "
     "llama2, or what Megatron-LM calls them (GPT2BPETokenizer ...)"},
    {"--vocab-file", "FILE", "gpt2: vocab.json; bert: vocab.txt"},
    {"--merge-file", "FILE", "gpt2: merges.txt"},
    {"--tokenizer-model", "FILE",
     "huggingface: tokenizer.json or its folder; sentencepiece, llama2: the .model file"},
    {"--vocab-size", "N", "null: how many ids there are"},
    {"--vocab-extra-ids", "N", "bert, sentencepiece: tokens <extra_id_0> ... behind the others"},
    {"--null-tokenizer-eod-id", "ID", "null: the id that ends a document [default: the last]"},
    {"--tokenizer-hf-no-include-special-tokens", "",
     "leave out the tokens of the template ([CLS] ... [SEP])"},
    {"--compat", "NAME", "main or classic: whose rules count [default: main]"},
}};

// The flags of a verb with these behind them.
template <size_t N>
constexpr std::array<OwnFlag, N + kTokenizerFlags.size()> with_tokenizer_flags(
    const std::array<OwnFlag, N>& own) {
  std::array<OwnFlag, N + kTokenizerFlags.size()> all{};
  std::copy(own.begin(), own.end(), all.begin());
  std::copy(kTokenizerFlags.begin(), kTokenizerFlags.end(), all.begin() + N);
  return all;
}

bool names_tokenizer(const FlagValues& flags);

// Usage error when no tokenizer is named.
TokenizerSpec tokenizer_from_flags(const FlagValues& flags);

}  // namespace bev::app
