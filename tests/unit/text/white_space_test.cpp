#include <gtest/gtest.h>

#include <string>

#include "text/utf8.h"

namespace bev {
namespace {

// What Python says: [c for c in range(0x110000) if chr(c).isspace()].
TEST(WhiteSpace, CharactersOfPython) {
  constexpr char32_t kSpaces[] = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x1C,   0x1D,   0x1E,
                                  0x1F,   0x20,   0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002,
                                  0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A,
                                  0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    const bool expected = std::find(std::begin(kSpaces), std::end(kSpaces), c) != std::end(kSpaces);
    ASSERT_EQ(white_space_at(text), expected ? text.size() : 0) << static_cast<uint32_t>(c);
  }
}

TEST(WhiteSpace, HalfACharacterIsNone) {
  EXPECT_EQ(white_space_at(""), 0u);
  EXPECT_EQ(white_space_at("\xC2"), 0u);
  EXPECT_EQ(white_space_at("\xE2\x80"), 0u);
  EXPECT_EQ(white_space_at("\x80"), 0u);
  EXPECT_EQ(strip("\x80 a \xE2\x80"), "\x80 a \xE2\x80");
}

TEST(WhiteSpace, Strip) {
  EXPECT_EQ(strip(" \t a b\u3000\n"), "a b");
  EXPECT_EQ(strip("\u00A0\u2003"), "");
  EXPECT_EQ(strip("a"), "a");
}

TEST(WhiteSpace, Words) {
  EXPECT_EQ(count_words(""), 0);
  EXPECT_EQ(count_words("  \n"), 0);
  EXPECT_EQ(count_words("one"), 1);
  EXPECT_EQ(count_words(" one  two\nthree\u2003four \xFF"), 5);
  EXPECT_EQ(last_word(" one two "), "two");
  EXPECT_EQ(last_word("one\u3000"), "one");
  EXPECT_EQ(last_word("a\u3000b\xC3\xA9"), "b\xC3\xA9");
  EXPECT_EQ(last_word(" \n"), "");
}

}  // namespace
}  // namespace bev
