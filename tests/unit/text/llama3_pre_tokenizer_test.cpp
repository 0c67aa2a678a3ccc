#include <gtest/gtest.h>

#include <array>
#include <random>

#include "text/bpe/bpe_pre_tokenizer.h"
#include "text/utf8.h"
#include "unit/text/random_text.h"

namespace bev {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(std::string_view text, int numbers = 3) {
  // In memory of exactly its size, so that reading behind it is found.
  const std::vector<char> exact(text.begin(), text.end());
  Llama3PreTokenizer pieces({exact.data(), exact.size()}, numbers);
  Pieces all;
  for (std::string_view piece; pieces.next(piece);) all.emplace_back(piece);
  return all;
}

TEST(Llama3PreTokenizer, ByHand) {
  EXPECT_EQ(pieces_of(""), Pieces{});
  EXPECT_EQ(pieces_of("Hello world"), (Pieces{"Hello", " world"}));
  EXPECT_EQ(pieces_of("it's IT'S we'LL a'\u017Fb"),
            (Pieces{"it", "'s", " IT", "'S", " we", "'LL", " a", "'\u017F", "b"}));
  EXPECT_EQ(pieces_of("'tis 'x ''"), (Pieces{"'t", "is", " '", "x", " ''"}));
  EXPECT_EQ(pieces_of("1234567 89"), (Pieces{"123", "456", "7", " ", "89"}));
  EXPECT_EQ(pieces_of("123", 1), (Pieces{"1", "2", "3"}));
  EXPECT_EQ(pieces_of("a.b (c) #x!?\n\nz"),
            (Pieces{"a", ".b", " (", "c", ")", " #", "x", "!?\n\n", "z"}));
  EXPECT_EQ(pieces_of("a  b\tc\u00A0d"), (Pieces{"a", " ", " b", "\tc", "\u00A0d"}));
  EXPECT_EQ(pieces_of("a \n\n  b \n"), (Pieces{"a", " \n\n", " ", " b", " \n"}));
  EXPECT_EQ(pieces_of("\na\r\nb"), (Pieces{"\n", "a", "\r\n", "b"}));
  EXPECT_EQ(pieces_of("a   "), (Pieces{"a", "   "}));
  EXPECT_EQ(pieces_of("\u65E5\u672C\u8A9E\u3002\u00E9"),
            (Pieces{"\u65E5\u672C\u8A9E", "\u3002\u00E9"}));
  EXPECT_EQ(pieces_of("abcdefghijklmn\u00E9opqrstuv"), Pieces{"abcdefghijklmn\u00E9opqrstuv"});
}

// The regular expression read out: each alternative by itself, the first that matches.
class Naive {
 public:
  Naive(std::string_view text, size_t numbers) : numbers_(numbers) {
    for (size_t at = 0; at < text.size();) {
      const Utf8Character next = utf8_character(text.data() + at);
      codes_.push_back(next.code);
      at += next.length;
    }
  }

  Pieces all() const {
    Pieces pieces;
    for (size_t at = 0; at < codes_.size();) {
      const size_t end = match(at);
      std::string piece;
      for (; at < end; ++at) append_utf8(codes_[at], piece);
      pieces.push_back(piece);
    }
    return pieces;
  }

 private:
  CharClass class_of(size_t i) const { return UnicodeClasses::table().of(codes_[i]); }
  bool is(size_t i, CharClass what) const { return i < codes_.size() && class_of(i) == what; }
  bool line_end(size_t i) const {
    return i < codes_.size() && (codes_[i] == '\r' || codes_[i] == '\n');
  }
  char32_t folded(size_t i) const {
    if (i >= codes_.size()) return 0;
    return codes_[i] == 0x17F ? 's' : codes_[i] < 128 ? codes_[i] | 0x20 : codes_[i];
  }
  size_t run(size_t i, CharClass what) const {
    while (is(i, what)) ++i;
    return i;
  }

  size_t match(size_t at) const {
    if (codes_[at] == '\'') {
      for (const char c : {'s', 't', 'm', 'd'})
        if (folded(at + 1) == static_cast<char32_t>(c)) return at + 2;
      for (const char* two : {"re", "ve", "ll"})
        if (folded(at + 1) == static_cast<char32_t>(two[0]) &&
            folded(at + 2) == static_cast<char32_t>(two[1]))
          return at + 3;
    }
    const bool optional = !line_end(at) && !is(at, CharClass::Letter) && !is(at, CharClass::Number);
    if (optional && is(at + 1, CharClass::Letter)) return run(at + 1, CharClass::Letter);
    if (is(at, CharClass::Letter)) return run(at, CharClass::Letter);
    if (is(at, CharClass::Number)) return std::min(run(at, CharClass::Number), at + numbers_);
    const size_t other = codes_[at] == ' ' && is(at + 1, CharClass::Other) ? at + 1 : at;
    if (is(other, CharClass::Other)) {
      size_t end = run(other, CharClass::Other);
      while (line_end(end)) ++end;
      return end;
    }
    const size_t behind = run(at, CharClass::Space);
    for (size_t end = behind; end > at; --end)
      if (line_end(end - 1)) return end;
    return behind == codes_.size() || behind == at + 1 ? behind : behind - 1;
  }

  std::vector<char32_t> codes_;
  size_t numbers_;
};

TEST(Llama3PreTokenizer, AsTheRegularExpressionSays) {
  std::mt19937 random(9);
  for (int round = 0; round < 4000; ++round) {
    std::string text = test::random_text(random, 24);
    for (int more = static_cast<int>(random() % 8); more > 0; --more)
      text.insert(
          random() % 2 == 0 ? 0 : text.size(),
          std::array{"'s", "'RE", " ", "\n", "\r\n ", "12345", "ab", "!", "'"}[random() % 9]);
    const int numbers = 1 + static_cast<int>(random() % 3);
    ASSERT_EQ(pieces_of(text, numbers), Naive(text, static_cast<size_t>(numbers)).all());
  }
}

}  // namespace
}  // namespace bev
