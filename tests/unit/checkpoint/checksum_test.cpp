#include "checkpoint/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace bev {
namespace {

// As `xxhsum -H3` prints it.
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum_text(checksum_of(std::string_view())), "2d06800538d394c2");
}

TEST(Checksum, PortionsDoNotMatter) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * 7);
  const std::span<const std::byte> bytes =
      std::as_bytes(std::span<const char>(text.data(), text.size()));
  for (const size_t portion : {size_t{1}, size_t{17}, size_t{256}, size_t{2999}}) {
    Checksum checksum;
    for (size_t at = 0; at < bytes.size(); at += portion)
      checksum.add(bytes.subspan(at, std::min(portion, bytes.size() - at)));
    EXPECT_EQ(checksum.value(), checksum_of(text)) << portion;
  }
}

TEST(Checksum, TextHasOneForm) {
  EXPECT_EQ(parse_checksum(checksum_text(0)), uint64_t{0});
  EXPECT_EQ(parse_checksum(checksum_text(~uint64_t{0})), ~uint64_t{0});
  for (const char* text : {"", "0", "00000000000000000", "000000000000000g", "-000000000000001",
                           "0x00000000000000", " 000000000000000", "000000000000000 "})
    EXPECT_FALSE(parse_checksum(text)) << text;
}

}  // namespace
}  // namespace bev
