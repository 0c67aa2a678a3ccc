#include "text/huggingface/token_decoder.h"

#include <gtest/gtest.h>

#include "text/bpe/bpe_vocab.h"

namespace bev {
namespace {

using Tokens = std::vector<std::string>;

Tokens of(const std::unique_ptr<TokenDecoder>& decoder, Tokens tokens) {
  decoder->apply(tokens);
  return tokens;
}

TEST(TokenDecoder, ByteLevel) {
  EXPECT_EQ(of(byte_level_decoder(), {"a", name_of_bytes(" \xC3"), name_of_bytes("\xA9")}),
            Tokens{"a \u00E9"});
  EXPECT_EQ(of(byte_level_decoder(), {name_of_bytes("\xFF"), "<\u2581>"}), Tokens{"\xFF<\u2581>"});
  EXPECT_EQ(of(byte_level_decoder(), {}), Tokens{""});
}

TEST(TokenDecoder, ByteFallback) {
  EXPECT_EQ(of(byte_fallback_decoder(), {"a", "<0xC3>", "<0xa9>", "b"}),
            (Tokens{"a", "\u00E9", "b"}));
  EXPECT_EQ(of(byte_fallback_decoder(), {"<0xC3>", "b", "<0x41>", "<0xFF>"}),
            (Tokens{"\uFFFD", "b", "\uFFFD", "\uFFFD"}));
  EXPECT_EQ(of(byte_fallback_decoder(), {"<0x4>", "<0xGG>", "<0x411>"}),
            (Tokens{"<0x4>", "<0xGG>", "<0x411>"}));
}

TEST(TokenDecoder, WordPiece) {
  EXPECT_EQ(of(wordpiece_decoder("##", false), {"##un", "##aff", "able", ".", "##x"}),
            (Tokens{"##un", "aff", " able", " .", "x"}));
  EXPECT_EQ(of(wordpiece_decoder("##", true), {"do", "n't", ".", "?", "'s", "'", "we", "'re"}),
            (Tokens{"do", "n't", ".", "?", "'s", " '", " we", "'re"}));
}

TEST(TokenDecoder, Metaspace) {
  EXPECT_EQ(of(metaspace_decoder(0x2581, true), {"\u2581\u2581a", "\u2581b"}), (Tokens{"a", " b"}));
  EXPECT_EQ(of(metaspace_decoder(0x2581, false), {"\u2581a", "b\u2581"}), (Tokens{" a", "b "}));
}

TEST(TokenDecoder, SmallSteps) {
  EXPECT_EQ(of(replace_decoder("aa", "a"), {"aaa", "b"}), (Tokens{"aa", "b"}));
  EXPECT_EQ(of(fuse_decoder(), {"a", "", "b"}), Tokens{"ab"});
  EXPECT_EQ(of(strip_decoder(' ', 1, 0), {"  a ", "b"}), (Tokens{" a ", "b"}));
  EXPECT_EQ(of(strip_decoder(' ', 0, 9), {"  a  ", "   "}), (Tokens{"  a", ""}));
  EXPECT_EQ(of(strip_decoder(0x2581, 2, 1), {"\u2581"}), Tokens{""});
  EXPECT_EQ(of(blanks_decoder(), {"a", "b", ""}), (Tokens{"a", " b", " "}));
}

}  // namespace
}  // namespace bev
