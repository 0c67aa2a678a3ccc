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

// Ids and word pieces of a tokenizer, as masking needs them.
struct MaskingVocabulary {
  int32_t classify = 0, separate = 0, mask = 0, pad = 0;
  int64_t ids = 0;                // random replacements are below it
  std::vector<bool> continues{};  // by id: a piece that continues a word ("##ing")
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

// N-grams of words in random order until the limit is reached. Of their tokens 80 % become [MASK],
// 10 % a random id, and 10 % stay. Keeps its memory from sample to sample.
class WordMasker {
 public:
  static constexpr int32_t kNoLabel = -1;

  void reserve(size_t tokens);

  // Masks the tokens in place. `Random` draws as NumpyDraws does.
  template <class Random>
  void mask(std::span<int32_t> tokens, double limit, const MaskingVocabulary& vocabulary,
            Random& random);

  // The id to predict for each token, or kNoLabel.
  std::span<const int32_t> labels() const { return labels_; }
  int64_t predicted() const { return predicted_; }

 private:
  void find_words(std::span<const int32_t> tokens, const MaskingVocabulary& vocabulary);
  // The positions of the words [word, word + count), as far as there are words.
  std::span<const int32_t> positions(int32_t word, int64_t count) const;

  std::vector<int32_t> positions_;    // of the words, one after the other
  std::vector<int32_t> word_begins_;  // in positions_, and its end
  std::vector<int32_t> order_, labels_;
  int64_t predicted_ = 0;
};

// One to three words, with probabilities in proportion to 1, 1/2 and 1/3.
int64_t ngram_words(double uniform);

template <class Random>
void WordMasker::mask(std::span<int32_t> tokens, double limit, const MaskingVocabulary& vocabulary,
                      Random& random) {
  constexpr double kMasked = 0.8, kReplaced = 0.5;
  find_words(tokens, vocabulary);
  labels_.assign(tokens.size(), kNoLabel);
  predicted_ = 0;
  order_.resize(word_begins_.size() - 1);
  std::iota(order_.begin(), order_.end(), 0);
  random.shuffle(order_);
  const auto fits = [&](size_t more) {
    return static_cast<double>(predicted_ + static_cast<int64_t>(more)) <= limit;
  };
  for (const int32_t word : order_) {
    if (static_cast<double>(predicted_) >= limit) break;
    int64_t count = ngram_words(random.random());
    std::span<const int32_t> ngram = positions(word, count);
    while (!fits(ngram.size()) && --count > 0) ngram = positions(word, count);
    const auto is_labelled = [&](int32_t at) { return labels_[static_cast<size_t>(at)] >= 0; };
    if (!fits(ngram.size()) || std::any_of(ngram.begin(), ngram.end(), is_labelled)) continue;
    for (const int32_t position : ngram) {
      const auto at = static_cast<size_t>(position);
      labels_[at] = tokens[at];
      if (random.random() < kMasked) {
        tokens[at] = vocabulary.mask;
      } else if (random.random() >= kReplaced) {
        tokens[at] = static_cast<int32_t>(random.integer(0, vocabulary.ids));
      }
    }
    predicted_ += std::ssize(ngram);
  }
}

}  // namespace bev
