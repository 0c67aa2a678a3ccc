// A tiny model of bytes, in a folder, and its losses as a textbook has them.
#pragma once

#include <algorithm>
#include <cmath>

#include "infer/scorer.h"
#include "text/tokenizer.h"
#include "unit/infer/stored_model.h"

namespace bev::test {

inline Config byte_config() {
  Config config = tiny_llama();
  config.model.vocab = 257;
  config.model.positions = 32;
  return config;
}

class ByteModel {
 public:
  static constexpr int64_t kLength = 16;

  ByteModel() : stored_(byte_config()), model_(stored_.load(3, kLength)), scorer_(model_) {}

  Scorer& scorer() { return scorer_; }
  // The loss and rank of the last id behind the others.
  TokenScore last(const std::vector<int32_t>& ids) {
    const auto vocab = static_cast<size_t>(model_.vocab());
    const std::vector<double> logits =
        all_logits(model_, std::vector<int32_t>(ids.begin(), ids.end() - 1));
    const std::span<const double> row(logits.data() + (ids.size() - 2) * vocab, vocab);
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit);
    const double own = row[static_cast<size_t>(ids.back())];
    return {.loss = std::log(sum) - own,
            .is_likeliest = own == *std::max_element(row.begin(), row.end())};
  }
  // The byte that the model finds the likeliest behind a text.
  char likeliest(const std::string& text) {
    std::vector<int32_t> ids;
    ByteTokenizer().encode(text, ids);
    const auto vocab = static_cast<size_t>(model_.vocab());
    const std::vector<double> logits = all_logits(model_, ids);
    const auto row = logits.end() - static_cast<ptrdiff_t>(vocab);
    return static_cast<char>(std::max_element(row, row + 256) - row);
  }

 private:
  StoredModel stored_;
  LoadedModel model_;
  Scorer scorer_;
};

inline std::vector<int32_t> bytes_of(const std::string& text) {
  std::vector<int32_t> ids;
  ByteTokenizer().encode(text, ids);
  return ids;
}

}  // namespace bev::test
