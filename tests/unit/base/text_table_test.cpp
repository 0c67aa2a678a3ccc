#include "base/text_table.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

TEST(TextTable, HeadingsAndNumbersShareTheColumns) {
  TextTable row("{:<6} {:>*}  {:>8.2f}{:>5}", 7);
  row("name", "count", "seconds", "of");
  row("first", 12, 1.005e3, 3);
  row(std::string("longer than it"), "-", 0.125, std::string_view("x"));
  EXPECT_EQ(row.text,
            "name     count   seconds   of\n"
            "first       12   1005.00    3\n"
            "longer than it       -      0.12    x\n");
}

TEST(TextTable, RowsMayEndEarlyAndOtherLinesMayStandBetween) {
  TextTable row("  {:<4} {:>6.1f}  {}");
  row.text = "heading\n";
  row("a", 1.25, "a note");
  row("b", 2.0);
  row("c");
  row.text += "end\n";
  EXPECT_EQ(row.text, "heading\n  a       1.2  a note\n  b       2.0\n  c   \nend\n");
}

TEST(TextTable, CellsWhoseNumberIsKnownAtRunTime) {
  TextTable row("{:<4} {:>5}  {:>3.1f}{}");
  row(std::vector<std::string>{"name", "bytes", "s", ""});
  row(std::vector<std::string>{"a", "12", "3", " most"});
  EXPECT_EQ(row.text, "name bytes    s\na       12    3 most\n");
}

}  // namespace
}  // namespace bev
