#include "base/json.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

// Fails when the builder puts a value into the wrong parent or drops the type of a number.
TEST(Json, ValuesArriveWithTheirTypes) {
  const Json j = parse_json(R"({"a":[1,-2,3.5,"x",null,true,{"b":[]}],"c":{}})", "f");
  EXPECT_TRUE(j["a"][0].is_number_unsigned());
  EXPECT_TRUE(j["a"][1].is_number_integer());
  EXPECT_FALSE(j["a"][1].is_number_unsigned());
  EXPECT_TRUE(j["a"][2].is_number_float());
  EXPECT_EQ(j.dump(), R"({"a":[1,-2,3.5,"x",null,true,{"b":[]}],"c":{}})");
}

// Fails when doubles are rounded on the way.
TEST(Json, NumbersKeepEveryBit) {
  EXPECT_EQ(parse_json("0.1", "f").get<double>(), 0.1);
  EXPECT_EQ(parse_json("5e-324", "f").get<double>(), 5e-324);
  EXPECT_EQ(parse_json("18446744073709551615", "f").get<uint64_t>(), 18446744073709551615ull);
}

// Fails when an error is reported without the file, or without the byte.
TEST(Json, SyntaxErrorsNameTheFileAndTheByte) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "nul", "1 2", "'a'", "{a:1}",
                           "[1] x", "\"\x01\"", "// c\n1", "NaN", "01", "\"\\u12\""}) {
    expect_error(ErrorKind::Data, "some.json: not valid JSON at byte",
                 [&] { parse_json(text, "some.json"); });
  }
}

// Fails when the library's end of input is believed: it stops at a zero byte.
TEST(Json, AZeroByteIsNotTheEnd) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"{}\0"sv, "{}\0garbage"sv, "\0"sv, "[1,\0 2]"sv}) {
    expect_error(ErrorKind::Data, "a zero byte", [&] { parse_json(text, "f"); });
  }
}

// Fails when the library's lexer is told to let invalid UTF-8 pass.
TEST(Json, TextThatIsNotUtf8IsRefused) {
  for (const char* text : {"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xe2\x82\""}) {
    expect_error(ErrorKind::Data, "not valid JSON", [&] { parse_json(text, "f"); });
  }
}

// Fails when the number error escapes as the library's own exception.
TEST(Json, NumbersOutOfRangeAreRefused) {
  expect_error(ErrorKind::Data, "f: not valid JSON", [] { parse_json("1e999", "f"); });
}

// Fails when the later of two equal names silently wins.
TEST(Json, RepeatedNamesAreRefused) {
  expect_error(ErrorKind::Data, "\"a\" stands twice", [] { parse_json(R"({"a":1,"a":2})", "f"); });
  expect_error(ErrorKind::Data, "\"a\" stands twice",
               [] { parse_json(R"({"x":[{"a":1,"b":2,"\u0061":3}]})", "f"); });
  EXPECT_NO_THROW(parse_json(R"({"a":{"a":1},"b":{"a":1}})", "f"));
}

// Fails when depth is not counted, or counted off by one.
TEST(Json, DepthIsLimited) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_NO_THROW(parse_json(nested(64), "f"));
  expect_error(ErrorKind::Data, "deeper than 64", [&] { parse_json(nested(65), "f"); });
  expect_error(ErrorKind::Data, "deeper than 64", [&] { parse_json(nested(1000000), "f"); });
  EXPECT_NO_THROW(parse_json("[{}]", "f", {.depth = 2}));
  expect_error(ErrorKind::Data, "deeper than 2",
               [] { parse_json("[{\"a\":[]}]", "f", {.depth = 2}); });
}

// Fails when the limit is checked after parsing.
TEST(Json, SizeIsLimited) {
  expect_error(ErrorKind::Data, "at most 4", [] { parse_json("[1,2,3", "f", {.bytes = 4}); });
}

// Fails when a hostile name reaches a message as it is.
TEST(Json, QuotedTextIsPrintableAndShort) {
  EXPECT_EQ(in_quotes("a\nb\x1b[2J\"\xff"), "\"a\\nb\\u001b[2J\\\"\\ufffd\"");
  EXPECT_LT(in_quotes(std::string(100000, 'x')).size(), 200u);
}

}  // namespace
}  // namespace bev
