// How well a BERT predicts masked tokens of a text: its masked perplexity. Not comparable with the
// perplexity of a causal model, which sees only what is before a token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/perplexity.h"
#include "infer/bert_text.h"
#include "infer/encoder_pass.h"

namespace bev {

// Which tokens are masked: every `every`-th of a piece, in `every` passes that begin at each of the
// first `every` tokens. So every token is predicted once, and nothing is drawn.
struct MaskingRule {
  int64_t length = 0;  // ids of a piece at most, [CLS] and [SEP] included
  int64_t every = 7;   // one token of seven, about the 15 % of the training
};
std::string rule_in_words(const MaskingRule& rule);

struct MaskedText {
  std::string name{};
  std::vector<std::vector<int32_t>> documents{};  // tokens, without special ones
};

// A text in documents. Data error if it has no tokens.
MaskedText masked_text_of(std::string name, std::string_view text, DocumentBreak documents,
                          BertText& bert);
// The documents of a token file. [CLS], [SEP] and [PAD] among its tokens are left out.
MaskedText masked_text_of(const EvalText& text, const BertText& bert);

// Pieces of documents: none spans two documents, each is as long as the rule allows.
int64_t count_pieces(const MaskedText& text, const MaskingRule& rule);

// Scores every token once. Collective. on_done gets the number of pieces done.
TextScore score_masked(
    EncoderPass& pass, const MaskedText& text, const BertText& bert, const MaskingRule& rule,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

}  // namespace bev
