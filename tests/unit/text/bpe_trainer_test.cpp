#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "base/json.h"
#include "support/expect_error.h"
#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/bpe/bpe_vocab.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/bpe/tokenizer_trainer.h"
#include "text/utf8.h"
#include "unit/text/naive_merging.h"

namespace bev {
namespace {

using test::expect_error;
using Texts = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

TrainedBpe train(const Texts& texts, const BpeTraining& how) {
  // In memory of exactly its size, so that reading behind it is found.
  std::vector<std::vector<char>> exact;
  std::vector<std::string_view> views;
  for (const std::string& text : texts) exact.emplace_back(text.begin(), text.end());
  for (const auto& text : exact) views.emplace_back(text.data(), text.size());
  return train_bpe(views, how, {.counted = [](int64_t) {}, .merged = [](size_t) {}});
}

Pairs merges_of(const TrainedBpe& trained) {
  Pairs pairs;
  for (const SymbolPair& pair : trained.merges)
    pairs.emplace_back(trained.tokens.at(static_cast<size_t>(pair.left)),
                       trained.tokens.at(static_cast<size_t>(pair.right)));
  return pairs;
}

// The definition, one merge at a time, everything counted anew. Tokens are compared by id: the
// bytes in the order of their names, then as they were made.
Pairs naive_merges(const Texts& texts, TextUnit unit, size_t limit, int64_t min_count) {
  std::vector<std::string> tokens = train({}, {.vocab = 256}).tokens;
  std::map<std::string, size_t> id_of;
  for (const std::string& token : tokens) id_of.emplace(token, id_of.size());
  std::map<std::string, int64_t> counts;
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t newline = unit == TextUnit::Line ? text.find('\n', begin) : std::string::npos;
      const size_t end = newline == std::string::npos ? text.size() : newline + 1;
      Gpt2PreTokenizer pieces(std::string_view(text).substr(begin, end - begin));
      for (std::string_view piece; pieces.next(piece);) ++counts[std::string(piece)];
      begin = end;
    }
  }
  test::SymbolWords words;
  for (const auto& [piece, count] : counts) {
    std::vector<size_t> ids;
    for (const char c : piece) ids.push_back(id_of.at(std::string(1, c)));
    words.emplace_back(ids, count);
  }
  Pairs merges;
  while (merges.size() < limit) {
    const auto best = test::most_frequent_pair(words, min_count);
    if (!best) break;
    const auto [left, right] = *best;
    merges.emplace_back(tokens[left], tokens[right]);
    tokens.push_back(tokens[left] + tokens[right]);
    test::replace_pair(words, *best, tokens.size() - 1);
  }
  return merges;
}

std::string random_text(std::mt19937& draw, size_t size, std::string_view letters) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += letters[draw() % letters.size()];
  return text;
}

TEST(BpeTrainer, AgreesWithTheDefinition) {
  std::mt19937 draw(1);
  for (int round = 0; round < 300; ++round) {
    constexpr std::array<std::string_view, 3> kLetters{"ab ", "aaab \n", "abc  \n"};
    Texts texts;
    for (size_t i = 0; i < 1 + draw() % 3; ++i) {
      std::string text = random_text(draw, draw() % 120, kLetters[draw() % 3]);
      if (draw() % 4 == 0) text += "\xC3\xA9\xC3\xA9 \xC3\xA9";
      texts.push_back(text);
    }
    const auto unit = draw() % 2 == 0 ? TextUnit::Line : TextUnit::Text;
    const int64_t min_count = 1 + draw() % 4;
    const size_t limit = draw() % 60;
    const TrainedBpe trained = train(texts, {.vocab = 256 + static_cast<int64_t>(limit),
                                             .min_count = min_count,
                                             .unit = unit,
                                             .threads = 1 + static_cast<int>(draw() % 3)});
    EXPECT_EQ(merges_of(trained), naive_merges(texts, unit, limit, min_count)) << round;
  }
}

TEST(BpeTrainer, BytesStandInTheOrderOfTheirNames) {
  const TrainedBpe trained = train({}, {.vocab = 300});
  ASSERT_EQ(trained.tokens.size(), 256u);
  EXPECT_EQ(trained.tokens[0], "!");
  EXPECT_EQ(trained.tokens[93], "~");
  EXPECT_EQ(trained.tokens[94], "\xA1");
  EXPECT_EQ(trained.tokens[188], std::string(1, '\0'));
  EXPECT_EQ(trained.tokens[220], " ");
  EXPECT_EQ(trained.text_tokens, 0);
}

TEST(BpeTrainer, OfEquallyFrequentPairsTheSmallerLeftThenTheSmallerRightWins) {
  EXPECT_EQ(merges_of(train({"cd ab cd ab"}, {.vocab = 258})), (Pairs{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(merges_of(train({"ac", "ab"}, {.vocab = 257, .min_count = 1})), (Pairs{{"a", "b"}}));
}

TEST(BpeTrainer, OverlappingPairsCountAndMergeFromTheLeft) {
  // a a occurs four times in aaaaa, more often than x y.
  const TrainedBpe trained = train({"aaaaa", "xy", "xy", "xy"}, {.vocab = 258, .min_count = 1});
  EXPECT_EQ(merges_of(trained), (Pairs{{"a", "a"}, {"x", "y"}}));
  EXPECT_EQ(trained.text_tokens, 3 + 3);
}

TEST(BpeTrainer, RarePairsAreNotMerged) {
  EXPECT_EQ(merges_of(train({"ab ab cd"}, {.vocab = 300, .min_count = 2})), (Pairs{{"a", "b"}}));
  EXPECT_TRUE(train({"ab ab cd"}, {.vocab = 300, .min_count = 3}).merges.empty());
}

TEST(BpeTrainer, LinesAreCutBeforeWords) {
  const Texts texts{"a\n b\n b\n b"};
  EXPECT_EQ(merges_of(train(texts, {.vocab = 300})), (Pairs{{" ", "b"}}));
  // In one text the newline before a blank is a piece of its own, as in lines; two of them are not.
  const Texts two{"a\n\nb\n\nb\n\nb"};
  EXPECT_TRUE(merges_of(train(two, {.vocab = 300})).empty());
  EXPECT_TRUE(merges_of(train(two, {.vocab = 300, .unit = TextUnit::Text})).empty());
  const Texts ends{"a\n\n", "b\n\n"};
  EXPECT_EQ(merges_of(train(ends, {.vocab = 300, .unit = TextUnit::Text})), (Pairs{{"\n", "\n"}}));
  EXPECT_TRUE(merges_of(train(ends, {.vocab = 300})).empty());
}

TEST(BpeTrainer, BytesThatAreNoTextAreReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(merges_of(train({"\xFF", "\xFF"}, {.vocab = 258})),
            merges_of(train({replacement, replacement}, {.vocab = 258})));
}

std::map<std::string, int64_t> as_map(const PieceCounts& counts) {
  std::map<std::string, int64_t> all;
  counts.for_each([&](std::string_view piece, int64_t count) { all[std::string(piece)] = count; });
  EXPECT_EQ(all.size(), counts.size());
  return all;
}

PieceCounts count_in(const std::string& text, TextUnit unit, int threads) {
  const std::vector<std::string_view> views{text};
  return count_pieces(
      views, unit, threads,
      [](std::string_view part, PieceCounts& into) { count_gpt2_pieces(part, into); },
      [&](int64_t bytes) { EXPECT_LE(bytes, static_cast<int64_t>(text.size())); });
}

// More than a chunk of 2 MiB, with all kinds of characters at the place where a chunk ends.
TEST(BpeTrainer, ChunksAndThreadsChangeNothing) {
  constexpr size_t kChunk = size_t{2} << 20;
  std::mt19937 draw(3);
  std::string text;
  while (text.size() < kChunk + 50000) {
    text += random_text(draw, 1 + draw() % 4, "abc") + random_text(draw, draw() % 4, " \n\t");
    if (draw() % 50 == 0) text += "'ll 've \xC2\xA0";
  }
  for (const std::string_view at_border :
       {"ab ab ab", "ab   ab ", "a      b", "\n\n\n\n\n\n\n\n", "'ll've's", "  \xC2\xA0\xC2\xA0 a",
        "\xE2\x80\x83 \xE2\x80\x83 ", "aaaaaaaa", "a\xF0\x9F\x98\x80 \xC3"}) {
    text.replace(kChunk - 4, at_border.size(), at_border);
    const std::string valid = replace_invalid_utf8(text);
    PieceCounts whole;
    count_gpt2_pieces(valid, whole);
    const auto expected = as_map(whole);
    for (const int threads : {1, 3})
      EXPECT_EQ(as_map(count_in(text, TextUnit::Text, threads)), expected) << at_border;
    EXPECT_EQ(as_map(count_in(text, TextUnit::Line, 3)), as_map(count_in(text, TextUnit::Line, 1)));
  }
  BpeTraining how{.vocab = 300};
  const TrainedBpe one = train({text}, how);
  how.threads = 3;
  EXPECT_EQ(train({text}, how).merges, one.merges);
}

TEST(BpeTrainer, AFailingThreadIsReported) {
  const std::string text(size_t{8} << 20, 'a');
  const std::vector<std::string_view> views{text};
  expect_error(ErrorKind::Data, "broken", [&] {
    count_pieces(
        views, TextUnit::Line, 2,
        [](std::string_view, PieceCounts&) { throw Error(ErrorKind::Data, "broken"); },
        [](int64_t) {});
  });
}

TEST(BpeTrainer, SpecialTokensStandLastAndAreNeverLearned) {
  const TrainedBpe trained =
      train({"ab ab ab"}, {.vocab = 270, .min_count = 1, .specials = {"ab", "<|endoftext|>"}});
  for (const std::string& token : trained.tokens) EXPECT_NE(token, "ab");
  const BpeVocab vocab({"v", vocab_json(trained)}, {"m", merges_txt(trained)});
  EXPECT_EQ(vocab.size(), static_cast<int64_t>(trained.tokens.size()) + 2);
  EXPECT_EQ(vocab.end_of_text(), vocab.size() - 1);
  const Json json = parse_json(tokenizer_json(trained), "tokenizer.json");
  EXPECT_EQ(json.at("added_tokens").size(), 2u);
  EXPECT_EQ(json.at("added_tokens").at(0).at("content"), "ab");
  EXPECT_EQ(json.at("added_tokens").at(0).at("id"), trained.tokens.size());
}

TEST(BpeTrainer, ImpossibleVocabulariesAreRefused) {
  const auto refused = [&](const BpeTraining& how, const std::string& why) {
    expect_error(ErrorKind::Usage, why, [&] { train({"a"}, how); });
  };
  refused({.vocab = 255}, "at least 256");
  refused({.vocab = 256, .specials = {"<s>"}}, "at least 257");
  refused({.vocab = 300, .specials = {"<a b>"}}, "cannot stand in a vocabulary");
  refused({.vocab = 300, .specials = {""}}, "cannot stand in a vocabulary");
  refused({.vocab = 300, .specials = {"a"}}, "cannot stand in a vocabulary");
  refused({.vocab = 300, .specials = {"<s>", "<s>"}}, "given twice");
}

// What was learned encodes the text as the training left it.
TEST(BpeTrainer, TrainedFilesEncodeAsTrained) {
  std::mt19937 draw(4);
  std::string text;
  for (int i = 0; i < 300; ++i) text += random_text(draw, 1 + draw() % 12, "abcde'st") + " ";
  const TrainedBpe trained = train({text}, {.vocab = 500, .specials = {"<|endoftext|>"}});
  const auto vocab = std::make_shared<const BpeVocab>(NamedText{"v", vocab_json(trained)},
                                                      NamedText{"m", merges_txt(trained)});
  Gpt2Tokenizer tokenizer(vocab);
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  EXPECT_EQ(static_cast<int64_t>(ids.size()), trained.text_tokens);
  EXPECT_EQ(tokenizer.decode(ids), text);
}

TEST(PieceCounter, CountsPiecesOfEveryLength) {
  PieceCounts counts;
  std::map<std::string, int64_t> expected;
  std::mt19937 draw(5);
  for (int i = 0; i < 30000; ++i) {
    const std::string piece = random_text(draw, 1 + draw() % 40, "abc").substr(0, 1 + draw() % 40);
    const std::vector<char> exact(piece.begin(), piece.end());
    counts.add({exact.data(), exact.size()}, exact.size());
    ++expected[piece];
  }
  // A zero byte is a byte.
  counts.add(std::string_view("a\0", 2), 2);
  expected[std::string("a\0", 2)] = 1;
  PieceCounts twice;
  twice.add(counts);
  twice.add(counts);
  std::map<std::string, int64_t> found;
  twice.for_each([&](std::string_view piece, int64_t count) { found[std::string(piece)] = count; });
  for (auto& [piece, count] : expected) count *= 2;
  EXPECT_EQ(found, expected);
  EXPECT_EQ(counts.size(), expected.size());
}

}  // namespace
}  // namespace bev
