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

}  // namespace bev
