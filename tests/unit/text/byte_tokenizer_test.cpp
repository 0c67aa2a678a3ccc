#include <gtest/gtest.h>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace bev {
namespace {

std::vector<int32_t> encoded(std::string_view text) {
  std::vector<int32_t> ids;
  ByteTokenizer().encode(text, ids);
  return ids;
}

TEST(ByteTokenizer, RoundTripOfAllBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::vector<int32_t> ids = encoded(all);
  ASSERT_EQ(ids.size(), 256u);
  for (int32_t i = 0; i < 256; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], i);
  EXPECT_EQ(ByteTokenizer().decode(ids), all);
  EXPECT_EQ(ByteTokenizer().decode(encoded("")), "");
}

TEST(ByteTokenizer, AppendsAndLeavesOutWhatIsNoByte) {
  std::vector<int32_t> ids{kByteEod};
  ByteTokenizer().encode("ab", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{256, 'a', 'b'}));
  EXPECT_EQ(ByteTokenizer().decode(std::vector<int32_t>{-1, 'a', 256, 257, 'b', 1 << 30}), "ab");
}

TEST(ByteTokenizer, CharactersAreNotCut) {
  EXPECT_EQ(complete_utf8(""), 0u);
  EXPECT_EQ(complete_utf8("abc"), 3u);
  for (const std::string text : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    for (size_t part = 1; part < text.size(); ++part)
      EXPECT_EQ(complete_utf8("ab" + text.substr(0, part)), 2u) << part;
    EXPECT_EQ(complete_utf8("ab" + text), 2 + text.size());
    EXPECT_EQ(complete_utf8(text.substr(0, 1)), 0u);
  }
}

// What no later byte can complete is not held back.
TEST(ByteTokenizer, NoUtf8IsNotHeldBack) {
  EXPECT_EQ(complete_utf8("\x80\x80\x80\x80"), 4u);
  EXPECT_EQ(complete_utf8("a\x80"), 2u);
  EXPECT_EQ(complete_utf8("\xFF"), 1u);
  EXPECT_EQ(complete_utf8("\xF8\x80"), 2u);
  EXPECT_EQ(complete_utf8("\xC0"), 1u);
}

}  // namespace
}  // namespace bev
