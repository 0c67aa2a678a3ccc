#include "data/preprocess/jsonl_reader.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

const std::vector<std::string> kText{"text"};

std::string read_one(std::string_view line) {
  JsonlReader reader(kText);
  const std::string why = reader.read(line);
  return why.empty() ? std::string(reader.texts(0).front()) : "refused: " + why;
}

void expect_refused(std::string_view line, std::string_view why) {
  JsonlReader reader(kText);
  EXPECT_NE(reader.read(line).find(why), std::string::npos) << line << "\n" << reader.read(line);
}

TEST(JsonLine, TextsWithAndWithoutEscapes) {
  EXPECT_EQ(read_one(R"({"text": "plain \u00e9 caf\u00E9 \ud83d\ude00"})"),
            "plain \u00E9 caf\u00E9 \U0001F600");
  EXPECT_EQ(read_one(R"({"text": "\"\\\/\b\f\n\r\t"})"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read_one(R"({"text": "a\u0000b"})"), std::string("a\0b", 3));
  EXPECT_EQ(read_one("{\"text\":\"\"}"), "");
  EXPECT_EQ(read_one("  { \"x\" :  1 , \"text\"\t:\"\u00FC\" } \r"), "\u00FC");
}

// Each run of plain characters is searched eight bytes at a time.
TEST(JsonLine, SpecialCharactersAtEveryPlace) {
  for (size_t length = 0; length < 40; ++length) {
    for (size_t at = 0; at <= length; ++at) {
      std::string plain(length, 'x');
      for (size_t i = 0; i < length; ++i) plain[i] = i % 3 == 0 ? '\x7f' : 'a';
      const std::string before = plain.substr(0, at), after = plain.substr(at);
      EXPECT_EQ(read_one("{\"text\":\"" + before + "\\n" + after + "\"}"), before + "\n" + after);
      expect_refused("{\"text\":\"" + before + '\x1f' + after + "\"}", "control character");
      expect_refused("{\"text\":\"" + before + '\n' + after + "\"}", "control character");
    }
  }
}

TEST(JsonLine, WhatPythonAccepts) {
  for (const char* value :
       {"NaN", "Infinity", "-Infinity", "-0.5e+7", "123456789012345678901234567890", "null", "true",
        "false", "[[], {}, [1, [\"]\"]]]", "{\"text\": \"inner\"}", "1E400"})
    EXPECT_EQ(read_one(std::string("{\"other\": ") + value + ", \"text\": \"good\"}"), "good")
        << value;
  // Of two the last counts.
  EXPECT_EQ(read_one(R"({"text": 1, "text": "first", "text": "last"})"), "last");
  expect_refused(R"({"text": "first", "text": 1})", "is a number");
  // The key itself may be escaped.
  EXPECT_EQ(read_one(R"({"\u0074ext": "good"})"), "good");
}

TEST(JsonLine, WhatIsNoJson) {
  for (const char* line : {"",
                           "  ",
                           "[]",
                           "\"text\"",
                           "{",
                           "{}x",
                           "{\"text\"}",
                           "{\"text\":}",
                           "{\"text\": \"a\",}",
                           "{\"text\": \"a\" \"b\": 1}",
                           "{text: \"a\"}",
                           "{'text': 'a'}",
                           "{\"text\": \"a",
                           "{\"text\": \"\\x\"}",
                           "{\"text\": \"\\u12g4\"}",
                           "{\"text\": \"\\u12",
                           "{\"text\": \"\\",
                           "{\"a\": 01, \"text\": \"a\"}",
                           "{\"a\": 1., \"text\": \"a\"}",
                           "{\"a\": .5, \"text\": \"a\"}",
                           "{\"a\": 1e, \"text\": \"a\"}",
                           "{\"a\": +1, \"text\": \"a\"}",
                           "{\"a\": nul, \"text\": \"a\"}",
                           "{\"a\": [1,], \"text\": \"a\"}",
                           "{\"a\": [1 2], \"text\": \"a\"}",
                           "{\"a\": -,}"}) {
    JsonlReader reader(kText);
    EXPECT_NE(reader.read(line), "") << line;
  }
}

TEST(JsonLine, HalfOfASurrogatePairIsNoCharacter) {
  for (const char* escape : {"\\ud800", "\\udc00", "\\ud800x", "\\ud800\\u0041", "\\ud800\\ud800",
                             "\\udfff\\ud800", "\\ud800\\n"})
    expect_refused(std::string("{\"text\": \"") + escape + "\"}", "surrogate");
  // Also where nobody asked for it: the line is not text.
  expect_refused(R"({"x": "\ud800", "text": "a"})", "surrogate");
}

TEST(JsonLine, InvalidUtf8IsNamedByItsPlace) {
  expect_refused("{\"text\": \"a\xFFz\"}", "column 12: byte 0xff");
  expect_refused("{\"text\": \"\xED\xA0\x80\"}", "is no UTF-8");
  expect_refused("{\"text\": \"\xC3\"}", "is no UTF-8");
}

TEST(JsonLine, DeepNestingIsRefusedNotFollowed) {
  const std::string deep(100'000, '['), end(100'000, ']');
  expect_refused("{\"a\": " + deep + end + ", \"text\": \"a\"}", "levels of nesting");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  expect_refused(objects, "levels of nesting");
  const std::string fine(JsonlReader::kMaxDepth - 1, '['),
      fine_end(JsonlReader::kMaxDepth - 1, ']');
  EXPECT_EQ(read_one("{\"a\": " + fine + fine_end + ", \"text\": \"a\"}"), "a");
}

TEST(JsonLine, ListsAreSentences) {
  JsonlReader reader(kText);
  ASSERT_EQ(reader.read(R"({"text": ["one", "t\u0077o", ""]})"), "");
  EXPECT_TRUE(reader.is_list(0));
  ASSERT_EQ(reader.texts(0).size(), 3u);
  EXPECT_EQ(reader.texts(0)[0], "one");
  EXPECT_EQ(reader.texts(0)[1], "two");
  ASSERT_EQ(reader.read(R"({"text": []})"), "");
  EXPECT_TRUE(reader.texts(0).empty());
  ASSERT_EQ(reader.read(R"({"text": "x"})"), "");
  EXPECT_FALSE(reader.is_list(0));
  expect_refused(R"({"text": ["one", 2]})", "a list with something else than texts");
  expect_refused(R"({"text": [["one"]]})", "a list with something else than texts");
}

TEST(JsonLine, KeysThatAreMissingOrWrong) {
  const std::vector<std::string> keys{"text", "title"};
  JsonlReader reader(keys);
  ASSERT_EQ(reader.read(R"({"title": "T", "text": "x\ty"})"), "");
  EXPECT_EQ(reader.texts(0).front(), "x\ty");
  EXPECT_EQ(reader.texts(1).front(), "T");
  EXPECT_EQ(reader.read(R"({"text": "a"})"), "there is no key \"title\"");
  EXPECT_EQ(reader.read(R"({"text": null, "title": "T"})"),
            "\"text\" is null; a text or a list of texts is wanted");
  EXPECT_EQ(reader.read(R"({"text": {"a": 1}, "title": "T"})"),
            "\"text\" is an object; a text or a list of texts is wanted");
}

}  // namespace
}  // namespace bev
