// Learns a WordPiece vocabulary as Hugging Face's WordPieceTrainer does: words are made of
// characters, those behind the first written with ## before them, and the most frequent pair of
// neighbours becomes one token again and again (merge_trainer.h).
//
// Ids: special tokens, then characters by code point, then the same with ##, then what was merged.
// There the ## characters stand in the order of a hash table, so that ties may fall otherwise.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/bpe_trainer.h"

namespace bev {

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

}  // namespace bev
