#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/bpe/bpe_vocab.h"

namespace bev {
namespace {

TEST(Utf8, EveryCharacterIsWrittenAndRead) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_utf8(code, text);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(valid_utf8_prefix(text), surrogate ? 0 : text.size()) << std::hex << uint32_t{code};
    if (surrogate) continue;
    const Utf8Character read = utf8_character(text.data());
    ASSERT_EQ(read.code, code);
    ASSERT_EQ(read.length, text.size());
  }
}

TEST(Utf8, TheValidPrefixEndsAtTheFirstFault) {
  EXPECT_EQ(valid_utf8_prefix(""), 0u);
  EXPECT_EQ(valid_utf8_prefix("twelve bytes"), 12u);
  // At each place relative to the words of eight bytes that are looked at together.
  for (size_t before = 0; before < 20; ++before) {
    const std::string text = std::string(before, 'x');
    EXPECT_EQ(valid_utf8_prefix(text + "\x80" + "abcdefghij"), before);
    EXPECT_EQ(valid_utf8_prefix(text + "\xE2\x82"), before);
    EXPECT_EQ(valid_utf8_prefix(text + "\u20AC" + "\xFF"), before + 3);
    EXPECT_EQ(valid_utf8_prefix(text + "\U0001F600"), before + 4);
  }
}

struct Replaced {
  const char *bytes, *text;
};

// What Python's bytes.decode("utf-8", errors="replace") gives.
TEST(Utf8, FaultsAreReplacedAsInPython) {
  const Replaced cases[] = {
      {"a\x80z", "a\uFFFDz"},
      {"\x80\x80", "\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xC3", "\uFFFD"},
      {"\xC3(", "\uFFFD("},
      {"\xC3\xC3\xA9", "\uFFFD\u00E9"},
      {"\xE2\x82", "\uFFFD"},
      {"\xE2\x82z", "\uFFFDz"},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xE0\x9F\xBF", "\uFFFD\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xED\x9F\xBF", "\uD7FF"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD\U0001F600"},
      {"\xF0\x80\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x8F\xBF\xBF", "\U0010FFFF"},
      {"\xF5\x80", "\uFFFD\uFFFD"},
      {"\xFF", "\uFFFD"},
      {"plain", "plain"},
      {"", ""},
  };
  for (const Replaced& each : cases) EXPECT_EQ(replace_invalid_utf8(each.bytes), each.text);
}

TEST(ByteAlphabet, EachByteHasACharacterOfItsOwn) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string name = name_of_bytes(all);
  EXPECT_EQ(bytes_of_name(name), all);
  EXPECT_EQ(valid_utf8_prefix(name), name.size());
  EXPECT_EQ(name_of_bytes(" a\n"), "\u0120a\u010A");
  EXPECT_EQ(name_of_bytes("\x7F\xA0\xAD\xFF"), "\u0121\u0142\u0143\u00FF");
}

TEST(ByteAlphabet, OtherCharactersStandForNoByte) {
  for (const char* name :
       {" ", "\n", "a b", "\u0144", "\u00A0", "\u00AD", "\u4E2D", "\x80", "\xC4"})
    EXPECT_EQ(bytes_of_name(name), std::nullopt) << name;
  EXPECT_EQ(bytes_of_name(""), "");
}

}  // namespace
}  // namespace bev
