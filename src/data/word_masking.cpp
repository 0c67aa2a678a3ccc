#include "data/word_masking.h"

#include <array>
#include <optional>

#include "base/check.h"

namespace bev {

WordPieces word_pieces(const Tokenizer& tokenizer) {
  WordPieces words{.classify = tokenizer.role_id(TokenRole::Classify).value_or(-1),
                   .separate = tokenizer.role_id(TokenRole::Separate).value_or(-1)};
  words.continues.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (size_t id = 0; id < words.continues.size(); ++id)
    words.continues[id] = tokenizer.token_name(static_cast<int32_t>(id)).starts_with("##");
  return words;
}

MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::string_view source) {
  const auto id_of = [&](TokenRole role, std::string_view name) {
    const std::optional<int32_t> id = tokenizer.role_id(role);
    BEV_CHECK(id, Data,
              "{}: the vocabulary has no {}, which samples of BERT need; expected a vocabulary "
              "of a BERT, with [CLS], [SEP], [MASK] and [PAD]",
              source, name);
    return *id;
  };
  MaskingVocabulary vocabulary{.words = word_pieces(tokenizer), .ids = tokenizer.vocab_size()};
  vocabulary.words.classify = id_of(TokenRole::Classify, "[CLS]");
  vocabulary.words.separate = id_of(TokenRole::Separate, "[SEP]");
  vocabulary.mask = id_of(TokenRole::Mask, "[MASK]");
  vocabulary.pad = id_of(TokenRole::Pad, "[PAD]");
  return vocabulary;
}

int64_t ngram_words(double uniform) {
  // Sums in the order of numpy.random.choice, so that they have its bits.
  static const std::array<double, 3> bounds = [] {
    const std::array<double, 3> weights{1.0, 1.0 / 2, 1.0 / 3};
    const double sum = weights[0] + weights[1] + weights[2];
    std::array<double, 3> sums{};
    double before = 0;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = before += weights[i] / sum;
    for (double& each : sums) each /= before;
    return sums;
  }();
  return 1 + std::count_if(bounds.begin(), bounds.end(),
                           [&](double bound) { return bound <= uniform; });
}

void NgramChooser::reserve(size_t tokens) {
  for (std::vector<int32_t>* list : {&positions_, &word_begins_, &order_, &labels_})
    list->reserve(tokens + 1);
}

void NgramChooser::find_words(std::span<const int32_t> tokens, const WordPieces& words) {
  positions_.clear();
  word_begins_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id == words.classify || id == words.separate) continue;
    const auto at = static_cast<size_t>(id);
    const bool continues = at < words.continues.size() && words.continues[at];
    // Also across [SEP], as in Megatron-LM.
    if (!continues || word_begins_.empty())
      word_begins_.push_back(static_cast<int32_t>(positions_.size()));
    positions_.push_back(static_cast<int32_t>(i));
  }
  word_begins_.push_back(static_cast<int32_t>(positions_.size()));
}

std::span<const int32_t> NgramChooser::words_at(int32_t word, int64_t count) const {
  const auto first = static_cast<size_t>(word);
  const size_t last = std::min(first + static_cast<size_t>(count), word_begins_.size() - 1);
  const auto begin = static_cast<size_t>(word_begins_[first]);
  return std::span(positions_).subspan(begin, static_cast<size_t>(word_begins_[last]) - begin);
}

}  // namespace bev
