// Learns a byte-level byte-pair encoding from texts, by the rules of Hugging Face's BpeTrainer: the
// tokens 0 to 255 are the bytes in GPT-2's order, each merge (merge_trainer.h) takes the next id,
// and special tokens stand behind all others, as GPT-2's do.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "text/bpe/merge_trainer.h"
#include "text/bpe/piece_counter.h"

namespace bev {

struct BpeTraining {
  int64_t vocab = 0;      // how many tokens, special ones included; fewer when pairs are too rare
  int64_t min_count = 2;  // a pair that occurs less often is not merged
  std::vector<std::string> specials{};
  TextUnit unit = TextUnit::Line;
  int threads = 1;
};

// How far a training is. Called on the thread that asked for it.
struct TrainingProgress {
  FunctionRef<void(int64_t bytes)> counted;
  FunctionRef<void(size_t merges)> merged;
};

struct TrainedBpe {
  std::vector<std::string> tokens;  // bytes by id, without the special tokens
  std::vector<SymbolPair> merges;
  std::vector<std::string> specials;  // ids from tokens.size() on
  int64_t text_tokens = 0;            // the training text has, with this vocabulary
};

// Usage error when the vocabulary has no room for the bytes and special tokens, or a special token
// cannot stand in a vocabulary file (printable ASCII can), is there twice or is a single byte.
TrainedBpe train_bpe(std::span<const std::string_view> texts, const BpeTraining& how,
                     TrainingProgress progress);

// Learns a WordPiece vocabulary as Hugging Face's WordPieceTrainer does: words are made of
// characters, those behind the first written with ## before them, and the most frequent pair of
// neighbours becomes one token again and again (merge_trainer.h).
//
// Ids: special tokens, then characters by code point, then the same with ##, then what was merged.
// There the ## characters stand in the order of a hash table, so that ties may fall otherwise.

struct WordPieceTraining {
  int64_t vocab = 0;  // how many tokens, special ones included; fewer when pairs are too rare
  int64_t min_count = 2;
  std::vector<std::string> specials{};  // behind the five that BERT needs
  bool lower_case = true;               // and without accents
  int threads = 1;
};

struct TrainedWordPiece {
  std::vector<std::string> tokens;  // by id, [PAD] [UNK] [CLS] [SEP] [MASK] first
  int64_t characters_left_out = 0;  // rarer ones than the 1000 most frequent
  int64_t text_tokens = 0;          // the training text has, with this vocabulary
};

// Usage error when the vocabulary has no room for the characters, or a special token is empty, no
// UTF-8, or there twice.
TrainedWordPiece train_wordpiece(std::span<const std::string_view> texts,
                                 const WordPieceTraining& how, TrainingProgress progress);

// vocab.txt: a token a line.
std::string vocab_txt(const TrainedWordPiece& trained);

// A trained byte-level vocabulary as the files that Hugging Face's libraries and bpe_vocab.h read.

// vocab.json: names to ids, in the order of the ids.
std::string vocab_json(const TrainedBpe& trained);

// merges.txt: a pair of names a line, the first to be merged first.
std::string merges_txt(const TrainedBpe& trained);

// tokenizer.json: both, with GPT-2's division into pieces and the special tokens as such.
std::string tokenizer_json(const TrainedBpe& trained);

}  // namespace bev
