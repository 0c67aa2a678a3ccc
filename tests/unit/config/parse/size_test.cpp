#include <gtest/gtest.h>

#include "config/parse/notation.h"

namespace bev {
namespace {

TEST(Size, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("300"), 300);
  EXPECT_EQ(parse_size("300B"), 300);
  EXPECT_EQ(parse_size("100K"), 100'000);
  EXPECT_EQ(parse_size("100kb"), 100'000);
  EXPECT_EQ(parse_size("2_500M"), 2'500'000'000);
  EXPECT_EQ(parse_size("1.1K"), 1'100);
  EXPECT_EQ(parse_size("1.5G"), 1'500'000'000);
  EXPECT_EQ(parse_size("1T"), 1'000'000'000'000);
  EXPECT_EQ(parse_size("64Ki"), 65'536);
  EXPECT_EQ(parse_size("64KiB"), 65'536);
  EXPECT_EQ(parse_size("1.5mi"), 1'572'864);
  EXPECT_EQ(parse_size("2Gi"), int64_t{2} << 30);
  EXPECT_EQ(parse_size("2e6"), 2'000'000);
}

TEST(Size, RefusesTheRest) {
  for (const char* text : {"",      "K",       "B",     "i",          "Ki",   "KiB",  "-1", "-1K",
                           "-1Ki",  "1.0005K", "0.1Ki", "1KK",        "1 K",  "1Kx",  "1i", "1e3K",
                           "nanKi", "infKi",   "9e18K", "99999999Ti", "1__0", "0x10", "10P"})
    EXPECT_FALSE(parse_size(text).has_value()) << text;
}

}  // namespace
}  // namespace bev
