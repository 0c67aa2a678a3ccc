#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "support/expect_error.h"
#include "text/bpe/tokenizer_trainer.h"
#include "text/huggingface/bert_vocab.h"
#include "unit/text/naive_merging.h"

namespace bev {
namespace {

using Tokens = std::vector<std::string>;

TrainedWordPiece train(const std::string& text, const WordPieceTraining& how) {
  const std::vector<std::string_view> texts{text};
  return train_wordpiece(texts, how, {.counted = [](int64_t) {}, .merged = [](size_t) {}});
}

// The definition for words of small letters between blanks: everything counted anew each time.
Tokens naive(const std::string& text, size_t vocab, int64_t min_count) {
  std::istringstream words_in(text);
  std::map<std::string, int64_t> counts;
  for (std::string word; words_in >> word;) ++counts[word];
  std::set<char> all, behind;
  for (const auto& [word, count] : counts) {
    all.insert(word.begin(), word.end());
    behind.insert(word.begin() + 1, word.end());
  }
  Tokens tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (const char c : all) tokens.emplace_back(1, c);
  for (const char c : behind) tokens.push_back(std::string("##") + c);
  const auto id_of = [&](const std::string& token) {
    return static_cast<size_t>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
  };
  test::SymbolWords words;
  for (const auto& [word, count] : counts) {
    std::vector<size_t> ids;
    for (const char c : word) ids.push_back(id_of((ids.empty() ? "" : "##") + std::string(1, c)));
    words.emplace_back(ids, count);
  }
  while (tokens.size() < vocab) {
    const auto best = test::most_frequent_pair(words, min_count);
    if (!best) break;
    const auto [left, right] = *best;
    tokens.push_back(tokens[left] + tokens[right].substr(2));
    test::replace_pair(words, *best, tokens.size() - 1);
  }
  return tokens;
}

TEST(WordPieceTrainer, AgreesWithTheDefinition) {
  std::mt19937 draw(1);
  for (int round = 0; round < 100; ++round) {
    std::string text;
    for (size_t i = 0; i < 1 + draw() % 60; ++i) {
      for (size_t letters = 1 + draw() % 7; letters > 0; --letters) text += "aabc"[draw() % 4];
      text += draw() % 5 == 0 ? '\n' : ' ';
    }
    const size_t vocab = 11 + draw() % 40;
    const int64_t min_count = 1 + draw() % 3;
    EXPECT_EQ(train(text, {.vocab = static_cast<int64_t>(vocab),
                           .min_count = min_count,
                           .threads = 1 + static_cast<int>(draw() % 2)})
                  .tokens,
              naive(text, vocab, min_count))
        << round;
  }
}

TEST(WordPieceTrainer, TextIsMadeLikeBerts) {
  const auto has = [](const TrainedWordPiece& trained, const std::string& token) {
    return std::find(trained.tokens.begin(), trained.tokens.end(), token) != trained.tokens.end();
  };
  const std::string text = "CAF\xC3\x89 caf\xC3\xA9, cafe!";
  const TrainedWordPiece lower = train(text, {.vocab = 100});
  EXPECT_TRUE(has(lower, "cafe"));
  EXPECT_TRUE(has(lower, ","));
  const TrainedWordPiece cased = train(text, {.vocab = 100, .min_count = 1, .lower_case = false});
  EXPECT_TRUE(has(cased, "CAF\xC3\x89"));
  EXPECT_TRUE(has(cased, "caf\xC3\xA9"));
}

TEST(WordPieceTrainer, TheVocabularyIsReadAndUsed) {
  const TrainedWordPiece trained =
      train("rose rose rose rises rises", {.vocab = 40, .specials = {"[END]"}});
  EXPECT_EQ(trained.tokens[5], "[END]");
  PipelineTokenizer tokenizer(bert_parts({"vocab.txt", vocab_txt(trained)}, {}), false);
  std::vector<int32_t> ids;
  tokenizer.encode("rose rises", ids);
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(tokenizer.token_name(ids[0]), "rose");
  EXPECT_EQ(trained.text_tokens, 5);
}

TEST(WordPieceTrainer, RareCharactersAreLeftOut) {
  std::string text = "abc abc ";
  for (char32_t code = 0x4E00; code < 0x4E00 + 1200; ++code) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
  const TrainedWordPiece trained = train(text, {.vocab = 2000});
  EXPECT_EQ(trained.characters_left_out, 203);
}

TEST(WordPieceTrainer, ImpossibleVocabulariesAreRefused) {
  const auto refused = [](const WordPieceTraining& how, const std::string& why) {
    test::expect_error(ErrorKind::Usage, why, [&] { train("abc", how); });
  };
  refused({.vocab = 9}, "at least 10");
  refused({.vocab = 90, .specials = {""}}, "cannot stand in a vocabulary");
  refused({.vocab = 90, .specials = {"[UNK]"}}, "given twice");
}

}  // namespace
}  // namespace bev
