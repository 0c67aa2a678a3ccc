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

// Ids and word pieces of a tokenizer, as samples of T5 need them. `sentinels`: the ids of
// <extra_id_0>, <extra_id_1>, ...
struct SpanVocabulary {
  WordPieces words{};
  int32_t begin = 0, end = 0, pad = 0;
  std::vector<int32_t> sentinels{};
  int64_t ids = 0;
};

// Data error if the vocabulary lacks one of the four tokens; `source` names it.
MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::string_view source);
// The decoder begins with the token for a beginning or, as Hugging Face's T5, with the padding.
// Data error if the vocabulary has no padding, no end or no sentinel.
SpanVocabulary span_vocabulary(const Tokenizer& tokenizer, std::string_view source);

// How many tokens of a sample are predicted, at most: a part of its target, and of its `length`
// tokens rounded to a whole number. A bound `most` above 0 replaces the part of the target.
inline double masking_limit(double part, int64_t most, int64_t target, int64_t length) {
  const double rounded = std::max(1.0, std::nearbyint(part * static_cast<double>(length)));
  const double bound = most > 0 ? static_cast<double>(most) : part * static_cast<double>(target);
  return std::min(bound, rounded);
}

// How many spans of a sample of T5 are predicted.
struct SpanLimits {
  double tokens = 0;  // masking_limit
  int64_t sentinels = 0;
  int64_t decoder = 0;  // its length: a begin, and a sentinel and the tokens of each span
};

// Chooses n-grams of words in random order until a limit is reached. Keeps its memory from sample
// to sample.
class WordMasker {
 public:
  static constexpr int32_t kNoLabel = -1;

  void reserve(size_t tokens);

  // BERT. Masks the tokens in place: of those chosen 80 % become [MASK], 10 % a random id, and 10 %
  // stay. `Random` draws as NumpyDraws does.
  template <class Random>
  void mask(std::span<int32_t> tokens, double limit, const MaskingVocabulary& vocabulary,
            Random& random);

  // T5. N-grams of up to ten words, shorter ones more often. One that the decoder or the sentinels
  // have no room for is shortened or left unmasked.
  template <class Random>
  void choose_spans(std::span<const int32_t> tokens, const SpanLimits& limits,
                    const WordPieces& words, Random& random);
  size_t spans() const { return spans_.size(); }
  // The positions of a span, in the order of the text. REQUIRES: index < spans().
  std::span<const int32_t> span(size_t index) const {
    return std::span(positions_).subspan(spans_[index].begin, spans_[index].count);
  }
  // Whether an n-gram was shortened or left out for lack of room.
  bool lacked_room() const { return lacked_room_; }

  // The id to predict for each token, or kNoLabel.
  std::span<const int32_t> labels() const { return labels_; }
  int64_t predicted() const { return predicted_; }

 private:
  struct Span {
    size_t begin, count;  // in positions_
  };

  void find_words(std::span<const int32_t> tokens, const WordPieces& words);
  // The positions of the words [word, word + count), as far as there are words.
  std::span<const int32_t> positions(int32_t word, int64_t count) const;
  // `draw_words()` is the length of an n-gram, which is shortened while `has_room(predicted)` is
  // false for all tokens with its own; `take(positions)` gets each one that is chosen.
  template <class Random, class DrawWords, class HasRoom, class Take>
  void choose_ngrams(std::span<const int32_t> tokens, double limit, const WordPieces& words,
                     Random& random, DrawWords draw_words, HasRoom has_room, Take take);

  std::vector<int32_t> positions_;    // of the words, one after the other
  std::vector<int32_t> word_begins_;  // in positions_, and its end
  std::vector<int32_t> order_, labels_;
  std::vector<Span> spans_;
  int64_t predicted_ = 0;
  bool lacked_room_ = false;
};

// One to three words, with probabilities in proportion to 1, 1/2 and 1/3.
int64_t ngram_words(double uniform);

template <class Random, class DrawWords, class HasRoom, class Take>
void WordMasker::choose_ngrams(std::span<const int32_t> tokens, double limit,
                               const WordPieces& words, Random& random, DrawWords draw_words,
                               HasRoom has_room, Take take) {
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
    std::span<const int32_t> ngram = positions(word, count);
    while (is_above_limit(ngram) && --count > 0) ngram = positions(word, count);
    if (is_above_limit(ngram) || std::any_of(ngram.begin(), ngram.end(), is_labelled)) continue;
    while (!ngram.empty() && !has_room(predicted_ + std::ssize(ngram)))
      ngram = positions(word, --count);
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
  choose_ngrams(
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

template <class Random>
void WordMasker::choose_spans(std::span<const int32_t> tokens, const SpanLimits& limits,
                              const WordPieces& words, Random& random) {
  constexpr int64_t kMostWords = 10;
  constexpr double kLastWord = 0.2;  // the probability that an n-gram ends with a word
  spans_.clear();
  lacked_room_ = false;
  const auto has_room = [&](int64_t predicted) {
    const int64_t spans = std::ssize(spans_) + 1;
    const bool fits = spans <= limits.sentinels && 1 + spans + predicted <= limits.decoder;
    lacked_room_ = lacked_room_ || !fits;
    return fits;
  };
  choose_ngrams(
      tokens, limits.tokens, words, random,
      [&] { return std::min(random.geometric(kLastWord), kMostWords); }, has_room,
      [&](std::span<const int32_t> ngram) {
        spans_.push_back({static_cast<size_t>(ngram.data() - positions_.data()), ngram.size()});
      });
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

}  // namespace bev
