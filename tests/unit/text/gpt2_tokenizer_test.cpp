#include "text/bpe/gpt2_tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/tokenizer.h"
#include "text/utf8.h"
#include "unit/text/encoded.h"
#include "unit/text/tiny_bpe.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// Merged: he 256, " t" 257, " the" 258, ll 259, and the first two bytes of U+FFFD 260.
std::shared_ptr<const BpeVocab> vocab() {
  return test::tiny_vocab({{"h", "e"}, {" ", "t"}, {" t", "he"}, {"l", "l"}, {"\xEF", "\xBF"}});
}
constexpr int32_t kEnd = 261;

TEST(Gpt2Tokenizer, MergesWithinPieces) {
  Gpt2Tokenizer tokenizer(vocab());
  EXPECT_EQ(tokenizer.vocab_size(), 262);
  EXPECT_EQ(tokenizer.eod_id(), kEnd);
  EXPECT_EQ(encoded(tokenizer, ""), Ids{});
  EXPECT_EQ(encoded(tokenizer, "the the"), (Ids{'t', 256, 258}));
  EXPECT_EQ(encoded(tokenizer, "hell"), (Ids{256, 259}));
  // h|e and l|l are apart in different pieces.
  EXPECT_EQ(encoded(tokenizer, "h e"), (Ids{'h', ' ', 'e'}));
  EXPECT_EQ(encoded(tokenizer, "'lll"), (Ids{'\'', 259, 'l'}));
}

TEST(Gpt2Tokenizer, AppendsAndRepeats) {
  Gpt2Tokenizer tokenizer(vocab());
  Ids ids{5};
  for (int round = 0; round < 3; ++round) tokenizer.encode(" the", ids);  // also from the cache
  EXPECT_EQ(ids, (Ids{5, 258, 258, 258}));
}

TEST(Gpt2Tokenizer, EndOfTextIsTextOrAnId) {
  Gpt2Tokenizer plain(vocab()), special(vocab(), SpecialText::Special);
  Ids spelled;
  for (const char c : kEndOfText) spelled.push_back(c);
  EXPECT_EQ(encoded(plain, kEndOfText), spelled);
  EXPECT_EQ(encoded(special, kEndOfText), Ids{kEnd});
  EXPECT_EQ(encoded(special, "he<|endoftext|> the"), (Ids{256, kEnd, 258}));
  EXPECT_EQ(encoded(special, "<|endoftext|><|endoftext|>"), (Ids{kEnd, kEnd}));
  EXPECT_EQ(encoded(special, "<|endoftext|").size(), 12u);
  // White space before it is at the end of its text: the blanks stay together.
  EXPECT_EQ(encoded(special, "a  <|endoftext|>t"), (Ids{'a', ' ', ' ', kEnd, 't'}));
  EXPECT_EQ(special.decode(Ids{256, kEnd}), "he<|endoftext|>");
}

TEST(Gpt2Tokenizer, WhatIsNoUtf8IsReplacedFirst) {
  Gpt2Tokenizer tokenizer(vocab());
  EXPECT_EQ(encoded(tokenizer, "he\xFFhe"), (Ids{256, 260, 0xBD, 256}));
  EXPECT_EQ(encoded(tokenizer, "\xE2\x82"), (Ids{260, 0xBD}));
}

TEST(Gpt2Tokenizer, DecodesExactBytes) {
  const Gpt2Tokenizer tokenizer(vocab());
  EXPECT_EQ(tokenizer.decode(Ids{260, 258, 0xFF}), "\xEF\xBF the\xFF");
  EXPECT_EQ(replace_invalid_utf8(tokenizer.decode(Ids{260, 258, 0xFF})), "\uFFFD the\uFFFD");
  EXPECT_EQ(tokenizer.decode(Ids{-1, 'a', 262, INT32_MAX}), "a");
}

TEST(Gpt2Tokenizer, RoundTripOfRandomBytes) {
  Gpt2Tokenizer tokenizer(vocab());
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    const bool mostly_letters = round % 2 == 0;
    for (char& c : bytes)
      c = mostly_letters && random() % 8 > 0 ? "thel "[random() % 5] : static_cast<char>(random());
    EXPECT_EQ(tokenizer.decode(encoded(tokenizer, bytes)), replace_invalid_utf8(bytes));
  }
}

// A text again and again, whole and in parts of other lengths: what the cache holds by then, and
// what it had to give up, changes nothing.
TEST(Gpt2Tokenizer, TheCacheChangesNothing) {
  std::mt19937 random(4);
  std::string text;
  while (text.size() < size_t{1} << 20) {
    for (size_t length = 1 + random() % 9; length > 0; --length) text += "thelx"[random() % 5];
    text += random() % 4 == 0 ? std::string(random() % 50, 'l') + "\n" : " ";
  }
  Gpt2Tokenizer warm(vocab());
  const Ids first = encoded(warm, text);
  EXPECT_EQ(encoded(warm, text), first);
  EXPECT_EQ(warm.decode(first), text);
  Gpt2Tokenizer forgetful(vocab(), SpecialText::Plain, 2);
  EXPECT_EQ(encoded(forgetful, text), first);
  for (int round = 0; round < 50; ++round) {
    const std::string part = text.substr(random() % text.size(), random() % 300);
    Gpt2Tokenizer cold(vocab());
    ASSERT_EQ(encoded(warm, part), encoded(cold, part));
  }
}

TEST(Gpt2Tokenizer, AWordOfAMillionBytes) {
  Gpt2Tokenizer tokenizer(vocab());
  const std::string word(size_t{1} << 20, 'l');
  EXPECT_EQ(encoded(tokenizer, word), Ids(word.size() / 2, 259));
}

TEST(ByteTokenizer, IsATokenizer) {
  ByteTokenizer bytes;
  Tokenizer& tokenizer = bytes;
  EXPECT_EQ(encoded(tokenizer, "a\xFF"), (Ids{'a', 255}));
  EXPECT_EQ(tokenizer.decode(Ids{'a', 255, 256}), "a\xFF");
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  EXPECT_EQ(tokenizer.eod_id(), 256);
}

}  // namespace
}  // namespace bev
