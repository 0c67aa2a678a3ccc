// The tokenizers there are.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bev {

// Byte: a byte is a token, 256 ends a document. Null: the text is numbers below the size of the
// vocabulary, the last of which ends a document. Gpt2: vocab.json and merges.txt. HuggingFace:
// tokenizer.json. Bert*: vocab.txt. SentencePiece, GptSentencePiece, Llama2: a .model file; they
// differ in which special tokens they add, under the rules of 2023 alone. External: another program
// made the ids, and nothing is known but how many there are.
enum class TokenizerKind : uint8_t {
  None,
  Byte,
  Null,
  Gpt2,
  HuggingFace,
  BertLower,
  BertCased,
  SentencePiece,
  GptSentencePiece,
  Llama2,
  External,
};

inline constexpr std::array<std::string_view, 11> kTokenizerNames{
    "none",       "byte",          "null",
    "gpt2",       "huggingface",   "bert-lower",
    "bert-cased", "sentencepiece", "gpt-sentencepiece",
    "llama2",     "external"};

// What Megatron-LM's --tokenizer-type calls them, words separated by blanks; empty: nothing.
inline constexpr std::array<std::string_view, 11> kMegatronTokenizerNames{
    "",
    "",
    "NullTokenizer",
    "GPT2BPETokenizer",
    "HuggingFaceTokenizer",
    "BertWordPieceLowerCase",
    "BertWordPieceCase",
    "SentencePieceTokenizer",
    "GPTSentencePieceTokenizer",
    "Llama2Tokenizer",
    "TikTokenizer"};

}  // namespace bev
