#include "eval/lambada.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/marked_bytes.h"
#include "unit/eval/byte_model.h"

namespace bev {
namespace {

using test::bytes_of;
using test::expect_error;

ScoringItem item_of(std::string_view passage, LambadaRule rule, int64_t length = 100) {
  ByteTokenizer tokenizer;
  return lambada_item(passage, rule, length, tokenizer);
}

std::vector<ScoringItem> read(std::string_view file) {
  ByteTokenizer tokenizer;
  return read_lambada("l.jsonl", file, LambadaRule::LastToken, 100, tokenizer);
}

TEST(Lambada, LastToken) {
  const ScoringItem item = item_of("ab cd", LambadaRule::LastToken);
  EXPECT_EQ(item.ids, bytes_of("ab cd"));
  EXPECT_EQ(item.first, 4);
}

// White space around the last word is made one space in front of it.
TEST(Lambada, LastWord) {
  const ScoringItem item = item_of(" ab \n cd ", LambadaRule::LastWord);
  EXPECT_EQ(item.ids, bytes_of("ab cd"));
  EXPECT_EQ(item.first, 2);
  // Found from the end, as the same word may stand in front.
  const ScoringItem twice = item_of("cd cd", LambadaRule::LastWord);
  EXPECT_EQ(twice.ids, bytes_of("cd cd"));
  EXPECT_EQ(twice.first, 2);
}

// What a vocabulary puts in front of a text is no part of the last word.
TEST(Lambada, ATextBeginsOnce) {
  test::MarkedBytes tokenizer;
  const ScoringItem item = lambada_item("ab c", LambadaRule::LastWord, 100, tokenizer);
  EXPECT_EQ(item.ids, (std::vector<int32_t>{test::kByteBegin, 'a', 'b', ' ', 'c'}));
  EXPECT_EQ(item.first, 3);
}

TEST(Lambada, LongPassagesLoseTheirBeginning) {
  const ScoringItem item = item_of("abcdefgh ij", LambadaRule::LastWord, 5);
  EXPECT_EQ(item.ids, bytes_of("fgh ij"));
  EXPECT_EQ(item.scored(), 3);
  expect_error(ErrorKind::Data, "3 tokens are to be scored",
               [] { item_of("abcdefgh ij", LambadaRule::LastWord, 2); });
}

TEST(Lambada, NothingInFront) {
  expect_error(ErrorKind::Data, "has 1 tokens", [] { item_of("a", LambadaRule::LastToken); });
  expect_error(ErrorKind::Data, "nothing stands before",
               [] { item_of("word", LambadaRule::LastWord); });
  expect_error(ErrorKind::Data, "nothing stands before",
               [] { item_of("  ", LambadaRule::LastWord); });
}

TEST(Lambada, ReadsLines) {
  const auto items = read("{\"text\": \"ab\"}\n\n{\"text\": \"a\\nb\", \"n\": 3}\r\n");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].ids, bytes_of("a\nb"));
  expect_error(ErrorKind::Data,
               "l.jsonl: line 3: ", [] { read("{\"text\": \"ab\"}\n\n{\"word\": 1}\n"); });
  expect_error(ErrorKind::Data, "l.jsonl: line 1: ", [] { read("{"); });
  expect_error(ErrorKind::Data, "line 1: a list", [] { read("{\"text\": [\"ab\"]}"); });
  expect_error(ErrorKind::Data, "no passage", [] { read("\n"); });
}

TEST(Lambada, CountsPassagesWhoseTokensAreAllForeseen) {
  test::ByteModel model;
  const std::string context = "abc";
  const std::string right = context + model.likeliest(context);
  const std::string twice = right + model.likeliest(right);
  const auto wrong = [](std::string text) {
    ++text.back();
    return text;
  };
  // The second token is right behind a wrong one.
  const std::string late = wrong(right) + model.likeliest(wrong(right));
  const std::vector<ScoringItem> items{{.ids = bytes_of(right), .first = 3},
                                       {.ids = bytes_of(wrong(twice)), .first = 3},
                                       {.ids = bytes_of(twice), .first = 3},
                                       {.ids = bytes_of(wrong(right)), .first = 3},
                                       {.ids = bytes_of(late), .first = 3}};
  const LambadaScore score = score_lambada(model.scorer(), items);
  ASSERT_EQ(score.passages.size(), 5u);
  EXPECT_TRUE(score.passages[0].is_correct);
  EXPECT_FALSE(score.passages[1].is_correct);
  EXPECT_TRUE(score.passages[2].is_correct);
  EXPECT_FALSE(score.passages[3].is_correct);
  EXPECT_FALSE(score.passages[4].is_correct);
  EXPECT_EQ(score.correct, 2);
  EXPECT_EQ(score.tokens, 8);
  EXPECT_DOUBLE_EQ(score.accuracy(), 0.4);
  EXPECT_NEAR(score.passages[2].nats,
              model.last(bytes_of(right)).loss + model.last(bytes_of(twice)).loss, 1e-12);
  double sum = 0;
  for (const PassageScore& passage : score.passages) sum += passage.nats;
  EXPECT_DOUBLE_EQ(score.nats, sum);
}

TEST(Lambada, LineOfMegatron) {
  LambadaScore score{.passages = std::vector<PassageScore>(8), .correct = 3};
  EXPECT_EQ(megatron_line(score),
            " validation results on LAMBADA | number correct: 3.0000E+00 | total examples: "
            "8.0000E+00 | avg accuracy: 3.7500E-01");
}

}  // namespace
}  // namespace bev
