#include "config/parse/notation.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

namespace bev {
namespace {

TEST(ParseInteger, AcceptsWhatIsExactlyAnInteger) {
  const std::tuple<const char*, int64_t> cases[] = {
      {"0", 0},
      {"12", 12},
      {"-1", -1},
      {"+7", 7},
      {"007", 7},
      {"1_000_000", 1000000},
      {"1e6", 1000000},
      {"1E6", 1000000},
      {"1e+6", 1000000},
      {"2.5e3", 2500},
      {"12.0", 12},
      {"1500e-2", 15},
      {"0e0", 0},
      {"-0", 0},
      {"0.000e99999", 0},
      {"9e18", 9000000000000000000},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"126_953_125", 126953125},
  };
  for (const auto& [text, value] : cases) {
    ASSERT_TRUE(parse_integer(text)) << text;
    EXPECT_EQ(*parse_integer(text), value) << text;
  }
}

TEST(ParseInteger, RefusesTheRest) {
  for (const char* text : {"",
                           "-",
                           "+",
                           "x",
                           "1x",
                           "1 ",
                           " 1",
                           "1.5",
                           "1e-1",
                           "1__0",
                           "_1",
                           "1_",
                           "1_.0",
                           "1._0",
                           "1e",
                           "e5",
                           ".",
                           "0x10",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "1e19",
                           "1e999999999999",
                           "1e100001",
                           "nan",
                           "inf",
                           "1,000",
                           "--1"})
    EXPECT_FALSE(parse_integer(text)) << text;
}

TEST(ParseReal, AcceptsFiniteDecimals) {
  const std::tuple<const char*, double> cases[] = {{"0", 0},   {".01", 0.01},      {"1e-5", 1e-5},
                                                   {"-1", -1}, {"+3.5", 3.5},      {"6.0E-5", 6e-5},
                                                   {"5.", 5},  {"1_000.5", 1000.5}};
  for (const auto& [text, value] : cases) {
    ASSERT_TRUE(parse_real(text)) << text;
    EXPECT_EQ(*parse_real(text), value) << text;
  }
  for (const char* text :
       {"", "nan", "inf", "-inf", "1e999", "0x1p3", "1,5", "1e", "abc", ".", "-"})
    EXPECT_FALSE(parse_real(text)) << text;
}

TEST(ParseBoolean, FourWords) {
  EXPECT_EQ(parse_boolean("true"), true);
  EXPECT_EQ(parse_boolean("1"), true);
  EXPECT_EQ(parse_boolean("false"), false);
  EXPECT_EQ(parse_boolean("0"), false);
  for (const char* text : {"", "yes", "True", "2", "on"}) EXPECT_FALSE(parse_boolean(text)) << text;
}

TEST(PlainText, IsUtf8WithoutNul) {
  EXPECT_TRUE(is_plain_text(""));
  EXPECT_TRUE(is_plain_text("run/\xC3\xA9t\xC3\xA9"));
  EXPECT_TRUE(is_plain_text("\xF0\x9F\x98\x80"));
  EXPECT_FALSE(is_plain_text(std::string_view("a\0b", 3)));
  for (const char* text : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                           "\xE0\x80\x80", "\xF0\x80\x80\x80"})
    EXPECT_FALSE(is_plain_text(text));
}

TEST(RealText, ReadsBackToTheSameNumber) {
  for (const double value :
       {0.0, 1.0, -1.0, 0.1, 1e-5, 1e300, 6e-5, 1.0 / 3, 500000.0, 1e15,
        std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}) {
    const std::string text = real_text(value);
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;
    ASSERT_TRUE(parse_real(text)) << text;
    EXPECT_EQ(*parse_real(text), value) << text;
  }
}

TEST(TomlString, EscapesWhatTomlWants) {
  EXPECT_EQ(toml_string("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
  EXPECT_EQ(toml_string("\x7F"), "\"\\u007F\"");
}

}  // namespace
}  // namespace bev
