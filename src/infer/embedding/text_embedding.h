// Text embeddings: the last hidden states of a BERT, pooled to one vector, or the embedding that a
// bi-encoder was trained for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "infer/bert_text.h"
#include "infer/encoder_pass.h"

namespace bev {

enum class Pooling : uint8_t {
  Mean,  // over all tokens, [CLS] and [SEP] included
  Cls,   // the state of [CLS]
};
inline constexpr std::array<std::string_view, 2> kPoolingNames{"mean", "cls"};

// Which encoder of a model embeds a text. A BERT has one encoder for both.
enum class Tower : uint8_t {
  Context,  // texts to be found
  Query,    // questions
};
inline constexpr std::array<std::string_view, 2> kTowerNames{"context", "query"};

struct EmbeddingRule {
  Pooling pooling = Pooling::Mean;  // of a BERT
  Tower tower = Tower::Context;
};

// The input of a text cut to `length` ids; the last is [SEP].
struct EmbeddingInput {
  EncoderInput input{};
  int64_t cut = 0;  // tokens left out
};
// REQUIRES: length >= BertText::kAdded.
EmbeddingInput embedding_input(const BertText& text, std::span<const int32_t> tokens,
                               int64_t length);

// One vector [pass.embedding_width()] for each input. Collective. Numerics error if one is not
// finite.
std::vector<std::vector<float>> embed_texts(
    EncoderPass& pass, std::span<const EncoderInput> inputs, const EmbeddingRule& rule,
    EncoderPass::OnDone on_done = [](int64_t) {});

}  // namespace bev
