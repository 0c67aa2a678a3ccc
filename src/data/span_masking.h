// Masking of spans: which parts of a text the decoder of a T5 predicts. Sentinels stand for them in
// the encoder's text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/word_masking.h"

namespace bev {

// Ids and word pieces of a tokenizer, as samples of T5 need them. `sentinels`: the ids of
// <extra_id_0>, <extra_id_1>, ...
struct SpanVocabulary {
  WordPieces words{};
  int32_t begin = 0, end = 0, pad = 0;
  std::vector<int32_t> sentinels{};
  int64_t ids = 0;
};

// The decoder begins with the token for a beginning or, as Hugging Face's T5, with the padding.
// Data error if the vocabulary has no padding, no end or no sentinel.
SpanVocabulary span_vocabulary(const Tokenizer& tokenizer, std::string_view source);

// How many spans of a sample of T5 are predicted.
struct SpanLimits {
  double tokens = 0;  // masking_limit
  int64_t sentinels = 0;
  int64_t decoder = 0;  // its length: a begin, and a sentinel and the tokens of each span
};

// Chooses spans of whole words. Keeps its memory from sample to sample.
class SpanMasker {
 public:
  void reserve(size_t tokens);

  // N-grams of up to ten words, shorter ones more often. One that the decoder or the sentinels
  // have no room for is shortened or left unmasked.
  template <class Random>
  void choose(std::span<const int32_t> tokens, const SpanLimits& limits, const WordPieces& words,
              Random& random);
  size_t spans() const { return spans_.size(); }
  // The positions of a span, in the order of the text. REQUIRES: index < spans().
  std::span<const int32_t> span(size_t index) const {
    return ngrams_.positions().subspan(spans_[index].begin, spans_[index].count);
  }
  // Whether an n-gram was shortened or left out for lack of room.
  bool lacked_room() const { return lacked_room_; }

 private:
  struct Span {
    size_t begin, count;  // in positions of ngrams_
  };

  NgramChooser ngrams_;
  std::vector<Span> spans_;
  bool lacked_room_ = false;
};

template <class Random>
void SpanMasker::choose(std::span<const int32_t> tokens, const SpanLimits& limits,
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
  ngrams_.choose(
      tokens, limits.tokens, words, random,
      [&] { return std::min(random.geometric(kLastWord), kMostWords); }, has_room,
      [&](std::span<const int32_t> ngram) {
        spans_.push_back(
            {static_cast<size_t>(ngram.data() - ngrams_.positions().data()), ngram.size()});
      });
  std::sort(spans_.begin(), spans_.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

}  // namespace bev
