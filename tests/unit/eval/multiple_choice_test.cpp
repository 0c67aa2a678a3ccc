#include "eval/multiple_choice.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/marked_bytes.h"
#include "unit/eval/byte_model.h"

namespace bev {
namespace {

using test::bytes_of;
using test::expect_error;

TEST(ChoiceQuestion, BothSpellings) {
  const ChoiceQuestion a =
      parse_question(R"({"ctx": "c", "endings": ["x", "y"], "label": 1, "id": {}})");
  EXPECT_EQ(a.context, "c");
  EXPECT_EQ(a.endings, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(a.label, 1u);
  const ChoiceQuestion b =
      parse_question(R"({"context": "c", "choices": ["x", "y", "z"], "gold": "2"})");
  EXPECT_EQ(b.endings.size(), 3u);
  EXPECT_EQ(b.label, 2u);
}

TEST(ChoiceQuestion, Refuses) {
  const auto refused = [](std::string_view line, const std::string& why) {
    expect_error(ErrorKind::Data, why, [&] { parse_question(line); });
  };
  refused("[]", "an object is needed");
  refused("{", "the question");
  refused(R"({"endings": ["x", "y"], "label": 1})", "neither \"ctx\" nor \"context\"");
  refused(R"({"ctx": 1, "endings": ["x", "y"], "label": 1})", "the context is not a text");
  refused(R"({"ctx": "", "endings": ["x"], "label": 0})", "two or more");
  refused(R"({"ctx": "", "endings": "xy", "label": 0})", "two or more");
  refused(R"({"ctx": "", "endings": ["x", 2], "label": 0})", "ending 1");
  refused(R"({"ctx": "", "endings": ["x", " "], "label": 0})", "ending 1");
  refused(R"({"ctx": "", "endings": ["x", "y"], "label": 2})", "numbered from 0 to 1");
  refused(R"({"ctx": "", "endings": ["x", "y"], "label": -1})", "numbered from 0 to 1");
  refused(R"({"ctx": "", "endings": ["x", "y"], "label": ""})", "the label is \"\"");
  refused(R"({"ctx": "", "endings": ["x", "y"], "label": 1.5})", "the label is 1.5");
  refused(R"({"ctx": "", "endings": ["x", "y"]})", "neither \"label\" nor \"gold\"");
}

TEST(ChoiceQuestion, FilesNameTheLine) {
  const std::string good = R"({"ctx": "c", "endings": ["x", "y"], "label": 1})";
  EXPECT_EQ(read_questions("q.jsonl", good + "\n\n" + good).back().line, 3);
  expect_error(ErrorKind::Data, "q.jsonl: line 2: an object",
               [&] { read_questions("q.jsonl", good + "\n7\n"); });
  expect_error(ErrorKind::Data, "q.jsonl: there is no question",
               [&] { read_questions("q.jsonl", "\n"); });
}

ScoringItem item_of(const std::string& context, const std::string& ending, int32_t eod = 256,
                    int64_t length = 100) {
  ByteTokenizer tokenizer;
  return choice_item({.context = context, .endings = {ending, "z"}}, 0, eod, length, tokenizer);
}

TEST(ChoiceItem, OneSpaceBetween) {
  EXPECT_EQ(item_of("ab", "cd").ids, bytes_of("ab cd"));
  EXPECT_EQ(item_of("ab", "cd").first, 2);
  EXPECT_EQ(item_of("ab ", "cd").ids, bytes_of("ab cd"));
  EXPECT_EQ(item_of("ab", "\tcd").ids, bytes_of("ab\tcd"));
}

// What a vocabulary puts in front of a text stands in front of the context alone.
TEST(ChoiceItem, ATextBeginsOnce) {
  test::MarkedBytes tokenizer;
  const ScoringItem item =
      choice_item({.context = "ab", .endings = {"c", "z"}}, 0, 256, 100, tokenizer);
  EXPECT_EQ(item.ids, (std::vector<int32_t>{test::kByteBegin, 'a', 'b', ' ', 'c'}));
  EXPECT_EQ(item.first, 3);
}

TEST(ChoiceItem, ContextsThatAreEmptyOrLong) {
  const ScoringItem item = item_of("", "c");
  EXPECT_EQ(item.ids, (std::vector<int32_t>{256, ' ', 'c'}));
  EXPECT_EQ(item.first, 1);
  EXPECT_EQ(item_of("abcdef", "g", -1, 4).ids, bytes_of("def g"));
  expect_error(ErrorKind::Data, "no token stands before an ending", [] { item_of(" ", "c", -1); });
  ByteTokenizer tokenizer;
  expect_error(ErrorKind::Data, "q.jsonl: line 5: 4 tokens are to be scored", [&] {
    choice_items("q.jsonl", {{.context = "a", .endings = {"b", "cde"}, .line = 5}}, 256, 3,
                 tokenizer);
  });
}

// The three ways to compare choose three endings.
TEST(Choice, SumAndMeans) {
  const QuestionScore question{.label = 1,
                               .endings = {{.nats = 4, .tokens = 1, .bytes = 2},
                                           {.nats = 6, .tokens = 2, .bytes = 60},
                                           {.nats = 9, .tokens = 9, .bytes = 10}}};
  EXPECT_EQ(question.chosen(ChoiceBy::Sum), 0u);
  EXPECT_EQ(question.chosen(ChoiceBy::PerByte), 1u);
  EXPECT_EQ(question.chosen(ChoiceBy::PerToken), 2u);
  const ChoiceScore score{.questions = {question, question}};
  EXPECT_EQ(score.accuracy(ChoiceBy::Sum), 0);
  EXPECT_EQ(score.accuracy(ChoiceBy::PerByte), 1);
}

TEST(Choice, ScoresEachEnding) {
  test::ByteModel model;
  const std::vector<ChoiceQuestion> questions{
      {.context = "abc", .endings = {"d", " efg", "h"}, .label = 2},
      {.context = "", .endings = {"x\u00E9 ", "y"}, .label = 0}};
  ByteTokenizer tokenizer;
  const std::vector<ScoringItem> items = choice_items("q", questions, 256, 16, tokenizer);
  ASSERT_EQ(items.size(), 5u);
  const ChoiceScore score = score_choices(model.scorer(), questions, items);
  ASSERT_EQ(score.questions.size(), 2u);
  EXPECT_EQ(score.questions[0].label, 2u);
  EXPECT_EQ(score.questions[0].endings[1].tokens, 4);
  EXPECT_EQ(score.questions[0].endings[1].bytes, 3);
  EXPECT_EQ(score.questions[1].endings[0].bytes, 3);
  EXPECT_EQ(score.tokens, 2 + 4 + 2 + 5 + 2);
  double expected = 0;
  for (std::vector<int32_t> ids = bytes_of("abc efg"); ids.size() > 3; ids.pop_back())
    expected += model.last(ids).loss;
  EXPECT_NEAR(score.questions[0].endings[1].nats, expected, 1e-12);
}

}  // namespace
}  // namespace bev
