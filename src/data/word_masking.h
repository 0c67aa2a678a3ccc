// Masking of whole words: which tokens of a sample a model predicts, and what it reads in their
// place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// How tokens form words.
struct WordPieces {
  int32_t classify = -1, separate = -1;  // belong to no word; -1: the vocabulary has none
  std::vector<bool> continues{};         // by id: a piece that continues a word ("##ing")
};
WordPieces word_pieces(const Tokenizer& tokenizer);

// Ids and word pieces of a tokenizer, as masking needs them.
struct MaskingVocabulary {
  WordPieces words{};
  int32_t mask = 0, pad = 0;
  int64_t ids = 0;  // random replacements are below it
};

// Data error if the vocabulary lacks one of the four tokens; `source` names it.
MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::string_view source);

// How many tokens of a sample are predicted, at most: a part of its target, and of its `length`
// tokens rounded to a whole number. A bound `most` above 0 replaces the part of the target.
inline double masking_limit(double part, int64_t most, int64_t target, int64_t length) {
  const double rounded = std::max(1.0, std::nearbyint(part * static_cast<double>(length)));
  const double bound = most > 0 ? static_cast<double>(most) : part * static_cast<double>(target);
  return std::min(bound, rounded);
}

// Chooses n-grams of words in random order until a limit is reached. Keeps its memory from sample
// to sample.
class NgramChooser {
 public:
  static constexpr int32_t kNoLabel = -1;

  void reserve(size_t tokens);

  // `draw_words()` is the length of an n-gram, which is shortened while `has_room(predicted)` is
  // false for all tokens with its own; `take(positions)` gets each one that is chosen: a span of
  // positions() in the order of the text. `Random` draws as NumpyDraws does.
  template <class Random, class DrawWords, class HasRoom, class Take>
  void choose(std::span<const int32_t> tokens, double limit, const WordPieces& words,
              Random& random, DrawWords draw_words, HasRoom has_room, Take take);

  // The id to predict for each token, or kNoLabel.
  std::span<const int32_t> labels() const { return labels_; }
  int64_t predicted() const { return predicted_; }
  // Positions of the tokens of all words, word by word.
  std::span<const int32_t> positions() const { return positions_; }

 private:
  void find_words(std::span<const int32_t> tokens, const WordPieces& words);
  // The positions of the words [word, word + count), as far as there are words.
  std::span<const int32_t> words_at(int32_t word, int64_t count) const;

  std::vector<int32_t> positions_;
  std::vector<int32_t> word_begins_;  // in positions_, and its end
  std::vector<int32_t> order_, labels_;
  int64_t predicted_ = 0;
};

// Masks samples of BERT.
class WordMasker {
 public:
  static constexpr int32_t kNoLabel = NgramChooser::kNoLabel;

  void reserve(size_t tokens) { ngrams_.reserve(tokens); }
  // In place: of the tokens chosen 80 % become [MASK], 10 % a random id, and 10 % stay.
  template <class Random>
  void mask(std::span<int32_t> tokens, double limit, const MaskingVocabulary& vocabulary,
            Random& random);

  // The id to predict for each token, or kNoLabel.
  std::span<const int32_t> labels() const { return ngrams_.labels(); }
  int64_t predicted() const { return ngrams_.predicted(); }

 private:
  NgramChooser ngrams_;
};

// One to three words, with probabilities in proportion to 1, 1/2 and 1/3.
int64_t ngram_words(double uniform);

template <class Random, class DrawWords, class HasRoom, class Take>
void NgramChooser::choose(std::span<const int32_t> tokens, double limit, const WordPieces& words,
                          Random& random, DrawWords draw_words, HasRoom has_room, Take take) {
  find_words(tokens, words);
  labels_.assign(tokens.size(), kNoLabel);
  predicted_ = 0;
  order_.resize(word_begins_.size() - 1);
  std::iota(order_.begin(), order_.end(), 0);
  random.shuffle(order_);
  const auto is_above_limit = [&](std::span<const int32_t> ngram) {
    return static_cast<double>(predicted_ + std::ssize(ngram)) > limit;
  };
  const auto is_labelled = [&](int32_t at) { return labels_[static_cast<size_t>(at)] >= 0; };
  for (const int32_t word : order_) {
    if (static_cast<double>(predicted_) >= limit) break;
    int64_t count = draw_words();
    std::span<const int32_t> ngram = words_at(word, count);
    while (is_above_limit(ngram) && --count > 0) ngram = words_at(word, count);
    if (is_above_limit(ngram) || std::any_of(ngram.begin(), ngram.end(), is_labelled)) continue;
    while (!ngram.empty() && !has_room(predicted_ + std::ssize(ngram)))
      ngram = words_at(word, --count);
    if (ngram.empty()) continue;
    for (const int32_t position : ngram)
      labels_[static_cast<size_t>(position)] = tokens[static_cast<size_t>(position)];
    predicted_ += std::ssize(ngram);
    take(ngram);
  }
}

template <class Random>
void WordMasker::mask(std::span<int32_t> tokens, double limit, const MaskingVocabulary& vocabulary,
                      Random& random) {
  constexpr double kMasked = 0.8, kReplaced = 0.5;
  ngrams_.choose(
      tokens, limit, vocabulary.words, random, [&] { return ngram_words(random.random()); },
      [](int64_t) { return true; },
      [&](std::span<const int32_t> ngram) {
        for (const int32_t position : ngram) {
          const auto at = static_cast<size_t>(position);
          if (random.random() < kMasked) {
            tokens[at] = vocabulary.mask;
          } else if (random.random() >= kReplaced) {
            tokens[at] = static_cast<int32_t>(random.integer(0, vocabulary.ids));
          }
        }
      });
}

}  // namespace bev
