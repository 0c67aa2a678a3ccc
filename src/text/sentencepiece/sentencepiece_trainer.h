// Trains SentencePiece models with the library's own trainer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

enum class SentencePieceStyle : uint8_t {
  Bpe,      // Llama's: bytes for what no piece covers, digits apart, spaces kept, unk/bos/eos 0/1/2
  Unigram,  // T5's: NFKC, pad/eos/unk 0/1/2
};

struct SentencePieceTraining {
  SentencePieceStyle style = SentencePieceStyle::Bpe;
  int64_t vocab = 0;
  std::vector<std::string> specials{};  // pieces that text is never cut within
  int threads = 1;
};

struct TrainedSentencePiece {
  std::string model;       // the content of a .model file
  int64_t long_lines = 0;  // were left out: longer than kLongestLine
  static constexpr size_t kLongestLine = size_t{1} << 20;
};

// A line is a sentence; all of them are held in memory. Usage error when the library refuses, for
// instance because the text is too small for the vocabulary.
TrainedSentencePiece train_sentencepiece(std::span<const std::string_view> texts,
                                         const SentencePieceTraining& how);

// The pieces of a model with their scores, a line each, as the library writes beside a model.
std::string sentencepiece_vocab(std::string_view model);

}  // namespace bev
