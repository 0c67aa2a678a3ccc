#include "config/parse/arg_scanner.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

using Args = std::vector<std::string>;

bool has_dash(std::string_view arg) { return arg.starts_with('-'); }

TEST(ArgScanner, TellsFlagsFromPositionalArguments) {
  const Args args{"--a=1=2", "file=x", "--b"};
  ArgScanner scan(args, has_dash);
  const auto a = scan.next(), file = scan.next(), b = scan.next();
  ASSERT_TRUE(a && file && b);
  EXPECT_TRUE(a->is_flag);
  EXPECT_EQ(a->text, "--a=1=2");
  EXPECT_EQ(a->name, "--a");
  EXPECT_EQ(a->attached, "1=2");
  EXPECT_FALSE(file->is_flag);
  EXPECT_EQ(file->text, "file=x");
  EXPECT_TRUE(b->is_flag);
  EXPECT_FALSE(b->attached);
  EXPECT_FALSE(scan.next());
}

TEST(ArgScanner, ValuesEndAtTheNextFlag) {
  const Args args{"--a=", "1", "2", "3", "-b"};
  ArgScanner scan(args, has_dash);
  const auto a = scan.next();
  EXPECT_EQ(scan.take_value(*a), "");  // attached, though empty
  EXPECT_EQ(scan.take_value({.name = "--c"}), "1");
  EXPECT_EQ(scan.take_values(1), Args{"2"});
  EXPECT_EQ(scan.take_values(9), Args{"3"});
  EXPECT_FALSE(scan.take_value({.name = "--c"}));
  const auto plain = [](std::string_view text) { return std::string(text); };
  EXPECT_EQ(scan.why_no_value(plain), "-b follows at once");
  EXPECT_EQ(scan.take(), "-b");
  EXPECT_EQ(scan.why_no_value(plain), "it is the last argument");
}

}  // namespace
}  // namespace bev
