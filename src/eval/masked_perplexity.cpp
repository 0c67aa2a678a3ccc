#include "eval/masked_perplexity.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"
#include "text/utf8.h"

namespace bev {

namespace {

// Pieces whose inputs exist at the same time.
constexpr size_t kPiecesTogether = 64;

struct TextPiece {
  size_t document;
  std::span<const int32_t> tokens;
};

int64_t piece_tokens(const MaskingRule& rule) { return rule.length - BertText::kAdded; }

std::vector<TextPiece> pieces_of(const MaskedText& text, const MaskingRule& rule) {
  const auto most = static_cast<size_t>(piece_tokens(rule));
  std::vector<TextPiece> pieces;
  for (size_t i = 0; i < text.documents.size(); ++i) {
    std::span<const int32_t> left = text.documents[i];
    while (!left.empty()) {
      const size_t size = std::min(most, left.size());
      pieces.push_back({.document = i, .tokens = left.first(size)});
      left = left.subspan(size);
    }
  }
  return pieces;
}

// The inputs in which every `every`-th token is masked, from each of the first tokens on.
void add_inputs(const TextPiece& piece, const BertText& bert, int64_t every,
                std::vector<EncoderInput>& inputs, std::vector<size_t>& documents) {
  const auto step = static_cast<size_t>(every);
  const std::vector<int32_t> whole = bert.wrapped(piece.tokens);
  for (size_t first = 0; first < std::min(step, piece.tokens.size()); ++first) {
    EncoderInput input{.ids = whole};
    for (size_t token = first; token < piece.tokens.size(); token += step) {
      const size_t position = token + 1;  // after [CLS]
      input.ids[position] = bert.mask();
      input.marked.push_back(static_cast<int32_t>(position));
      input.targets.push_back(piece.tokens[token]);
    }
    inputs.push_back(std::move(input));
    documents.push_back(piece.document);
  }
}

void require_tokens(const MaskedText& text) {
  BEV_CHECK(std::any_of(text.documents.begin(), text.documents.end(),
                        [](const std::vector<int32_t>& tokens) { return !tokens.empty(); }),
            Data, "{}: there is nothing to score in the file", text.name);
}

}  // namespace

std::string rule_in_words(const MaskingRule& rule) {
  return format(
      "each token is predicted once, with every {}. token of its piece masked ([MASK], never kept "
      "or replaced); a piece is up to {} tokens of one document between [CLS] and [SEP]",
      rule.every, piece_tokens(rule));
}

MaskedText masked_text_of(std::string name, std::string_view text, DocumentBreak documents,
                          BertText& bert) {
  MaskedText result{.name = std::move(name)};
  for_each_document(text, documents, [&](std::string_view document) {
    const size_t valid = valid_utf8_prefix(document);
    BEV_CHECK(valid == document.size(), Data,
              "{}: byte {} is not UTF-8, and the tokenizer would score another character in its "
              "place; expected UTF-8",
              result.name, static_cast<size_t>(document.data() - text.data()) + valid);
    result.documents.push_back(bert.tokens(document));
  });
  require_tokens(result);
  return result;
}

MaskedText masked_text_of(const EvalText& text, const BertText& bert) {
  MaskedText result{.name = text.name};
  for (const EvalDocument& document : text.documents) {
    std::vector<int32_t> ids(static_cast<size_t>(document.tokens));
    if (!ids.empty()) text.stream.read(document.begin, ids);
    std::erase_if(ids, [&](int32_t id) { return bert.is_special(id); });
    result.documents.push_back(std::move(ids));
  }
  require_tokens(result);
  return result;
}

int64_t count_pieces(const MaskedText& text, const MaskingRule& rule) {
  int64_t pieces = 0;
  for (const std::vector<int32_t>& tokens : text.documents)
    pieces += div_ceil(std::ssize(tokens), piece_tokens(rule));
  return pieces;
}

TextScore score_masked(EncoderPass& pass, const MaskedText& text, const BertText& bert,
                       const MaskingRule& rule, FunctionRef<void(int64_t done)> on_done) {
  TextScore result{.documents = std::vector<DocumentScore>(text.documents.size())};
  const std::vector<TextPiece> pieces = pieces_of(text, rule);
  for (size_t begin = 0; begin < pieces.size(); begin += kPiecesTogether) {
    const size_t end = std::min(begin + kPiecesTogether, pieces.size());
    std::vector<EncoderInput> inputs;
    std::vector<size_t> documents;
    for (size_t i = begin; i < end; ++i) add_inputs(pieces[i], bert, rule.every, inputs, documents);
    pass.losses(
        inputs,
        [&](size_t input, size_t, double nats) {
          result.documents[documents[input]].nats += nats;
          ++result.documents[documents[input]].tokens;
        },
        [](int64_t) {});
    on_done(static_cast<int64_t>(end));
  }
  for (const DocumentScore& each : result.documents) {
    result.tokens += each.tokens;
    result.nats += each.nats;
  }
  return result;
}

}  // namespace bev
