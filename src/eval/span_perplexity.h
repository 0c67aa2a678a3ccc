// How well a T5 predicts masked spans of a text: the loss of its training (`lm loss`) on samples of
// that text. Not comparable with the perplexity of a causal model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/t5_dataset.h"
#include "eval/perplexity.h"
#include "infer/loaded_model.h"

namespace bev {

// Which spans are masked. They are drawn as in training, from the seed and the number of a piece of
// the text, so that a score can be repeated.
struct SpanRule {
  int64_t length = 0;               // tokens of the encoder's text, at most
  int64_t most_decoder_tokens = 0;  // of the decoder's text
  double masked = 0.15;             // part of the tokens
  uint64_t seed = 1234;

  // Tokens of a piece. Samples of training have room for two more, too.
  int64_t piece_tokens() const { return length - 2; }
  // Tokens that the decoder's text needs if every span has a single token, at most
  // most_decoder_tokens.
  int64_t decoder_length() const;
};
std::string rule_in_words(const SpanRule& rule);

// A text in samples. Each is of one document, and as long as the rule allows.
struct SpanText {
  std::string name{};
  std::vector<T5Texts> samples{};
  std::vector<size_t> documents{};  // the document of a sample, by the index of the sample
  size_t document_count = 0;
  int64_t tokens = 0;        // without special ones
  int64_t without_room = 0;  // samples with spans that lacked room, and stay in the encoder's text

  // The longest text of the samples.
  int64_t longest_encoder() const;
  int64_t longest_decoder() const;
};

// Special tokens of the text are left out. Data error if nothing else is in it.
SpanText span_text_of(const EvalText& text, const SpanVocabulary& vocabulary, const SpanRule& rule);

struct SpanScore {
  int64_t targets = 0;  // tokens of spans, their sentinels and ends
  double nats = 0;
  std::vector<double> samples{};  // nats of each sample, if batches have one
};

// Collective. on_done gets the number of samples done.
SpanScore score_spans(
    LoadedModel& model, const SpanText& text, int32_t pad,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

}  // namespace bev
