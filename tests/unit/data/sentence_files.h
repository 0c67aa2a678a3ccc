// Files of sentences, and a small vocabulary of BERT, for tests.
#pragma once

#include <string>
#include <vector>

#include "data/span_masking.h"
#include "unit/data/token_files.h"

namespace bev::test {

// Documents of sentences of tokens.
using Documents = std::vector<std::vector<Sequence>>;

inline void write_documents(const std::filesystem::path& prefix, const Documents& documents) {
  TokenFileWriter writer(prefix, TokenType::u16);
  for (const auto& document : documents) {
    for (const Sequence& sentence : document) writer.add_sequence(sentence);
    writer.end_document();
  }
  writer.commit();
}

inline constexpr int32_t kPad = 0, kUnknown = 1, kClassify = 2, kSeparate = 3, kMask = 4;
inline constexpr int32_t kFirstWord = 5, kWords = 20;  // a0, a1, ...; every fourth is "##"
inline constexpr int64_t kSmallVocab = kFirstWord + kWords;

inline bool continues_word(int32_t id) { return id >= kFirstWord && (id - kFirstWord) % 4 == 3; }

inline void write_small_vocabulary(const std::filesystem::path& path) {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int32_t i = 0; i < kWords; ++i)
    text += (continues_word(kFirstWord + i) ? "##a" : "a") + std::to_string(i) + "\n";
  write_bytes(path, text);
}

inline WordPieces small_word_pieces() {
  WordPieces words{.classify = kClassify, .separate = kSeparate};
  for (int32_t id = 0; id < kSmallVocab; ++id) words.continues.push_back(continues_word(id));
  return words;
}

inline MaskingVocabulary small_vocabulary() {
  return {.words = small_word_pieces(), .mask = kMask, .pad = kPad, .ids = kSmallVocab};
}

// With sentinels behind the words.
inline SpanVocabulary small_span_vocabulary(int32_t sentinels) {
  SpanVocabulary vocabulary{.words = small_word_pieces(),
                            .begin = kClassify,
                            .end = kSeparate,
                            .pad = kPad,
                            .ids = kSmallVocab + sentinels};
  for (int32_t i = 0; i < sentinels; ++i)
    vocabulary.sentinels.push_back(static_cast<int32_t>(kSmallVocab) + i);
  return vocabulary;
}

// Words from `first` on, which repeat.
inline Sequence sentence_of(size_t length, int32_t first = 0) {
  Sequence sentence(length);
  for (size_t i = 0; i < length; ++i)
    sentence[i] = kFirstWord + (first + static_cast<int32_t>(i)) % kWords;
  return sentence;
}

// Twelve documents of three sentences, a_sentence.bin and .idx, with their vocab.txt.
inline void write_small_corpus(const std::filesystem::path& folder) {
  Documents documents;
  for (int32_t d = 0; d < 12; ++d)
    documents.push_back({sentence_of(static_cast<size_t>(1 + d % 7), d), sentence_of(9, 2 * d),
                         sentence_of(static_cast<size_t>(2 + d % 3), 3 * d)});
  write_documents(folder / "a_sentence", documents);
  write_small_vocabulary(folder / "vocab.txt");
}

}  // namespace bev::test
