#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {
namespace {

using Strings = std::vector<std::string>;

Strings pieces_of(const std::string& text) {
  // In memory of exactly its size, so that reading behind it is found.
  const std::vector<char> exact(text.begin(), text.end());
  Gpt2PreTokenizer pieces({exact.data(), exact.size()});
  Strings all;
  for (std::string_view piece; pieces.next(piece);) all.emplace_back(piece);
  return all;
}

TEST(UnicodeClasses, RangesAreSortedAndApart) {
  char32_t behind = 0;
  for (const CharClassRange& range : char_class_ranges()) {
    EXPECT_LE(range.first, range.last);
    EXPECT_GE(range.first, behind);
    behind = range.last + 1;
  }
  EXPECT_LE(behind, char32_t{0x110000});
}

TEST(UnicodeClasses, SomeOfEach) {
  const UnicodeClasses& table = UnicodeClasses::table();
  for (const char32_t c : {U'a', U'Z', U'\u00AA', U'\u00E9', U'\u0416', U'\u05D0', U'\u4E2D',
                           U'\uAC00', U'\U0001D400', U'\U00020000', U'\U000323AF'})
    EXPECT_EQ(table.of(c), CharClass::Letter) << uint32_t{c};
  for (const char32_t c : {U'0', U'\u00B2', U'\u00BD', U'\u0663', U'\u0967', U'\u2167', U'\u3007',
                           U'\U0001D7D8', U'\U0001F100'})
    EXPECT_EQ(table.of(c), CharClass::Number) << uint32_t{c};
  for (const char32_t c : {U'\t', U'\v', U'\r', U' ', U'\u0085', U'\u00A0', U'\u1680', U'\u2003',
                           U'\u2028', U'\u3000'})
    EXPECT_EQ(table.of(c), CharClass::Space) << uint32_t{c};
  for (const char32_t c : {U'\0', U'\x1C', U'\x1F', U'_', U'\u0301', U'\u200B', U'\u200D',
                           U'\u180E', U'\uFEFF', U'\uFFFD', U'\U0001F600', U'\U0010FFFF'})
    EXPECT_EQ(table.of(c), CharClass::Other) << uint32_t{c};
}

struct Cut {
  const char* text;
  Strings pieces;
};

// The right sides are what GPT-2's regular expression finds.
TEST(Gpt2PreTokenizer, LiteralCases) {
  const std::vector<Cut> cuts = {
      {"", {}},
      {"a", {"a"}},
      {" ", {" "}},
      {"Hello, world!", {"Hello", ",", " world", "!"}},
      {"antidisestablishmentarianism now", {"antidisestablishmentarianism", " now"}},
      {"x123y", {"x", "123", "y"}},
      {" 12 ab", {" 12", " ab"}},
      {"a_b-c", {"a", "_", "b", "-", "c"}},
      {" ... !?", {" ...", " !?"}},
      // Contractions: lower case, at a quote that starts a piece.
      {"it's", {"it", "'s"}},
      {"I'm we're they've I'll he'd don't",
       {"I", "'m", " we", "'re", " they", "'ve", " I", "'ll", " he", "'d", " don", "'t"}},
      {"IT'S", {"IT", "'", "S"}},
      {"'tis", {"'t", "is"}},
      {"'says", {"'s", "ays"}},
      {"'really", {"'re", "ally"}},
      {"'r", {"'", "r"}},
      {"'l", {"'", "l"}},
      {"'v 'e", {"'", "v", " '", "e"}},
      {"'", {"'"}},
      {"''s", {"''", "s"}},
      {"!'s", {"!'", "s"}},
      {" 's", {" '", "s"}},
      {"a\u2019s", {"a", "\u2019", "s"}},
      // White space: the last blank goes with what follows, other white space stays alone.
      {"a  b", {"a", " ", " b"}},
      {"a   b", {"a", "  ", " b"}},
      {"a b ", {"a", " b", " "}},
      {"a b   ", {"a", " b", "   "}},
      {"   ", {"   "}},
      {"  a", {" ", " a"}},
      {"a\nb", {"a", "\n", "b"}},
      {"a\n\nb", {"a", "\n", "\n", "b"}},
      {"a\n\n\nb", {"a", "\n\n", "\n", "b"}},
      {"a \nb", {"a", " ", "\n", "b"}},
      {"a\n b", {"a", "\n", " b"}},
      {"a\r\nb", {"a", "\r", "\n", "b"}},
      {"a\t\t1", {"a", "\t", "\t", "1"}},
      {"a\n\n", {"a", "\n\n"}},
      {"a\u00A0b", {"a", "\u00A0", "b"}},
      {"a \u3000b", {"a", " ", "\u3000", "b"}},
      {"a\u2003\u2003 b", {"a", "\u2003\u2003", " b"}},
      {"a\u3000", {"a", "\u3000"}},
      {"\u0085\u0085x", {"\u0085", "\u0085", "x"}},
      // Letters, numbers and the rest beyond ASCII.
      {"na\u00EFve caf\u00E9s", {"na\u00EFve", " caf\u00E9s"}},
      {"\u041F\u0440\u0438\u0432\u0435\u0442, \u043C\u0438\u0440",
       {"\u041F\u0440\u0438\u0432\u0435\u0442", ",", " \u043C\u0438\u0440"}},
      {"\u4E2D\u6587\u3002\u6587", {"\u4E2D\u6587", "\u3002", "\u6587"}},
      {"x\u0663\u0664 \u0967\u0968", {"x", "\u0663\u0664", " \u0967\u0968"}},
      {"5\u00B2\u00BD\u2167", {"5\u00B2\u00BD\u2167"}},
      {"e\u0301a", {"e", "\u0301", "a"}},
      {"\u0E01\u0E34\u0E01", {"\u0E01", "\u0E34", "\u0E01"}},
      {" \U0001F600\U0001F600 ok", {" \U0001F600\U0001F600", " ok"}},
      {"\U0001D400\U0001D7D8", {"\U0001D400", "\U0001D7D8"}},
      {"a\u200Bb", {"a", "\u200B", "b"}},
      {"\uFFFD\uFFFD", {"\uFFFD\uFFFD"}},
  };
  for (const Cut& cut : cuts) EXPECT_EQ(pieces_of(cut.text), cut.pieces) << '"' << cut.text << '"';
}

TEST(Gpt2PreTokenizer, ZeroBytesAreCharacters) {
  EXPECT_EQ(pieces_of(std::string("a\0\0b", 4)), (Strings{"a", std::string(2, '\0'), "b"}));
}

// The regular expression read word for word: each alternative in turn at each place.
class NaivePieces {
 public:
  explicit NaivePieces(std::u32string text) : text_(std::move(text)) {}

  Strings all() {
    Strings pieces;
    while (at_ < text_.size()) {
      const size_t length = match();
      std::string piece;
      for (size_t i = 0; i < length; ++i) append_utf8(text_[at_ + i], piece);
      pieces.push_back(piece);
      at_ += length;
    }
    return pieces;
  }

 private:
  bool is(size_t at, CharClass char_class) const {
    return at < text_.size() && UnicodeClasses::table().of(text_[at]) == char_class;
  }
  size_t run(size_t at, CharClass char_class) const {
    size_t length = 0;
    while (is(at + length, char_class)) ++length;
    return length;
  }
  size_t match() const {
    for (const std::u32string_view each : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"})
      if (std::u32string_view(text_).substr(at_).starts_with(each)) return each.size();
    for (const CharClass each : {CharClass::Letter, CharClass::Number, CharClass::Other}) {
      const size_t blank = text_[at_] == U' ' ? 1 : 0;
      for (size_t before = blank;; before = 0) {  // greedy: with the blank first
        if (const size_t length = run(at_ + before, each); length > 0) return before + length;
        if (before == 0) break;
      }
    }
    const size_t white = run(at_, CharClass::Space);
    for (size_t length = white; length > 0; --length)
      if (at_ + length == text_.size() || is(at_ + length, CharClass::Space)) return length;
    return white;
  }

  std::u32string text_;
  size_t at_ = 0;
};

TEST(Gpt2PreTokenizer, SameAsTheRegularExpressionOnRandomTexts) {
  constexpr std::array kAlphabet = {
      U'a', U's',      U't',      U'r',      U'e',      U'v',          U'm',          U'l',
      U'd', U'Q',      U'\'',     U'\'',     U' ',      U' ',          U' ',          U'\n',
      U'1', U'9',      U'!',      U'\u00E9', U'\u00B2', U'\u00A0',     U'\u3000',     U'\u4E2D',
      U'-', U'\u0663', U'\u2019', U'\u0301', U'\u0085', U'\U0001F600', U'\U0001D400', U'\t'};
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::u32string characters;
    std::string text;
    const size_t length = random() % 24;
    // Few different characters make long runs.
    const size_t kinds = 1 + random() % kAlphabet.size(), shift = random();
    for (size_t i = 0; i < length; ++i) {
      characters += kAlphabet[(random() % kinds + shift) % kAlphabet.size()];
      append_utf8(characters.back(), text);
    }
    ASSERT_EQ(pieces_of(text), NaivePieces(characters).all()) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace bev
