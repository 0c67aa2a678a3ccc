#include "infer/embedding/text_embedding.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace bev {

EmbeddingInput embedding_input(const BertText& text, std::span<const int32_t> tokens,
                               int64_t length) {
  const int64_t kept = std::min(std::ssize(tokens), length - BertText::kAdded);
  return {.input = {.ids = text.wrapped(tokens.first(static_cast<size_t>(kept)))},
          .cut = std::ssize(tokens) - kept};
}

namespace {

void require_finite(const std::vector<float>& vector) {
  BEV_CHECK(std::all_of(vector.begin(), vector.end(), [](float x) { return std::isfinite(x); }),
            Numerics,
            "the embedding of a text is not finite: the weights of the model or what it "
            "computes from them are not");
}

}  // namespace

std::vector<std::vector<float>> embed_texts(EncoderPass& pass, std::span<const EncoderInput> inputs,
                                            const EmbeddingRule& rule,
                                            EncoderPass::OnDone on_done) {
  const auto width = static_cast<size_t>(pass.width());
  std::vector<std::vector<float>> vectors(inputs.size());
  if (pass.is_biencoder()) {
    pass.embeddings(
        inputs, rule.tower == Tower::Query ? kQueryText : kContextText,
        [&](size_t input, std::span<const float> embedding) {
          vectors[input].assign(embedding.begin(), embedding.end());
          require_finite(vectors[input]);
        },
        on_done);
    return vectors;
  }
  pass.hidden(
      inputs,
      [&](size_t input, std::span<const float> hidden) {
        const size_t rows = rule.pooling == Pooling::Cls ? 1 : hidden.size() / width;
        std::vector<float>& vector = vectors[input];
        for (size_t column = 0; column < width; ++column) {
          double sum = 0;
          for (size_t row = 0; row < rows; ++row) sum += hidden[row * width + column];
          vector.push_back(static_cast<float>(sum / static_cast<double>(rows)));
        }
        require_finite(vector);
      },
      on_done);
  return vectors;
}

}  // namespace bev
