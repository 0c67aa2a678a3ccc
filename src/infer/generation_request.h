// What is asked of a model, and what it answers, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace bev {

// How the next token is chosen; ops/sampling.h says what each number means.
struct SamplingOptions {
  double temperature = 1;  // 0: always the likeliest
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double top_p_decay = 1, top_p_bound = 0;  // top_p shrinks by the factor with each token, not
                                            // below
  double min_p = 0;
  double repetition_penalty = 1;
};

// The text that the encoder of an encoder-decoder reads.
struct SourceText {
  std::vector<int32_t> ids{};
  int64_t length = 0;  // of the ids; the others are padding, which the decoder sees

  // The sentinels of a T5 are special tokens, and part of its text.
  SpecialIds shown_specials() const {
    return ids.empty() ? SpecialIds::LeaveOut : SpecialIds::Keep;
  }
};

struct GenerationRequest {
  std::vector<int32_t> prompt{};  // not empty, ids of the vocabulary; of an encoder-decoder the
                                  // start of the decoder's text, one token
  int64_t tokens = 256;           // new ones, at most; 0: only the prompt is scored
  SamplingOptions choice{};
  // Draws are keyed by seed, sample and position: they do not depend on what is generated beside
  // the text.
  uint64_t seed = 1234;
  int64_t sample = 0;
  int32_t end = -1;          // the id that ends a text; -1: none
  int64_t alternatives = 0;  // likeliest tokens that are named with each token
  bool score_prompt = false;
  SourceText source{};  // of an encoder-decoder, else empty

  // Tokens that the user gave.
  int64_t prompt_tokens() const {
    return source.ids.empty() ? static_cast<int64_t>(prompt.size()) : source.length;
  }
};

// Why a text ended.
enum class FinishReason : uint8_t {
  None,    // it has not
  End,     // the model ended it
  Length,  // as many tokens as were asked for
  Failed,  // the model gave no finite probability to any token
};

struct ScoredToken {
  int32_t id = 0;
  double logprob = 0;  // of the logits as they are, whatever was done to choose
};

// One token of the text of a request, or of its end.
struct TokenEvent {
  bool has_token = false;
  ScoredToken token{};
  std::vector<ScoredToken> alternatives{};  // likeliest first
  std::vector<ScoredToken> prompt{};  // with the first event, where asked for: from the second
                                      // token on
  FinishReason finish = FinishReason::None;  // the last event says why
};

using TokenSink = std::function<void(const TokenEvent& event)>;

}  // namespace bev
