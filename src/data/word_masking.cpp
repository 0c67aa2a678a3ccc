#include "data/word_masking.h"

#include <array>

#include "base/check.h"

namespace bev {

MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::string_view source) {
  const auto id_of = [&](TokenRole role, std::string_view name) {
    const std::optional<int32_t> id = tokenizer.role_id(role);
    BEV_CHECK(id, Data,
              "{}: the vocabulary has no {}, which samples of BERT need; expected a vocabulary "
              "of a BERT, with [CLS], [SEP], [MASK] and [PAD]",
              source, name);
    return *id;
  };
  MaskingVocabulary vocabulary{.classify = id_of(TokenRole::Classify, "[CLS]"),
                               .separate = id_of(TokenRole::Separate, "[SEP]"),
                               .mask = id_of(TokenRole::Mask, "[MASK]"),
                               .pad = id_of(TokenRole::Pad, "[PAD]"),
                               .ids = tokenizer.vocab_size()};
  vocabulary.continues.resize(static_cast<size_t>(vocabulary.ids));
  for (int64_t id = 0; id < vocabulary.ids; ++id)
    vocabulary.continues[static_cast<size_t>(id)] =
        tokenizer.token_name(static_cast<int32_t>(id)).starts_with("##");
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

void WordMasker::reserve(size_t tokens) {
  for (std::vector<int32_t>* list : {&positions_, &word_begins_, &order_, &labels_})
    list->reserve(tokens + 1);
}

void WordMasker::find_words(std::span<const int32_t> tokens, const MaskingVocabulary& vocabulary) {
  positions_.clear();
  word_begins_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id == vocabulary.classify || id == vocabulary.separate) continue;
    const auto at = static_cast<size_t>(id);
    const bool continues = at < vocabulary.continues.size() && vocabulary.continues[at];
    // Also across [SEP], as in Megatron-LM.
    if (!continues || word_begins_.empty())
      word_begins_.push_back(static_cast<int32_t>(positions_.size()));
    positions_.push_back(static_cast<int32_t>(i));
  }
  word_begins_.push_back(static_cast<int32_t>(positions_.size()));
}

std::span<const int32_t> WordMasker::positions(int32_t word, int64_t count) const {
  const auto first = static_cast<size_t>(word);
  const size_t last = std::min(first + static_cast<size_t>(count), word_begins_.size() - 1);
  const auto begin = static_cast<size_t>(word_begins_[first]);
  return std::span(positions_).subspan(begin, static_cast<size_t>(word_begins_[last]) - begin);
}

}  // namespace bev
