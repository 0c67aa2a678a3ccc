#include "verify/layout_name.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

TEST(LayoutName, EveryPartSetsItsField) {
  const ParallelConfig p = parse_layout("tp2.sp.pp4.dp3.zero1.chunks5.first6.last7.interleaved");
  EXPECT_EQ(p.tensor, 2);
  EXPECT_TRUE(p.sequence);
  EXPECT_EQ(p.pipeline, 4);
  EXPECT_EQ(p.ranks, 2 * 4 * 3);
  EXPECT_EQ(p.zero, 1);
  EXPECT_EQ(p.chunks, 5);
  EXPECT_EQ(p.first_layers, 6);
  EXPECT_EQ(p.last_layers, 7);
  EXPECT_EQ(p.schedule, ScheduleKind::Interleaved);
}

TEST(LayoutName, NothingIsOneRank) {
  for (const char* text : {"", "one", "tp1", "dp1.pp1", "1f1b", "zero0"})
    EXPECT_EQ(layout_text(parse_layout(text)), "one") << text;
}

// Fails when an order or a separator matters.
TEST(LayoutName, PartsComeInAnyOrder) {
  EXPECT_EQ(layout_text(parse_layout("zero-bubble,pp2,sp.dp4.tp8,zero1")),
            "tp8.sp.pp2.dp4.zero1.zero-bubble");
}

TEST(LayoutName, IsReadBackToTheSame) {
  for (const char* text :
       {"one", "tp2", "tp2.sp", "pp4.gpipe", "dp2.zero1", "pp2.chunks2", "tp4.sp.pp2.dp2.zero1",
        "pp3.first1.last2.zero-bubble", "tp2.pp2.dp16.chunks3.interleaved"})
    EXPECT_EQ(layout_text(parse_layout(text)), text);
}

TEST(LayoutName, RefusalsSayWhatIsLegal) {
  for (const char* text : {"tp", "tpx", "tp-2", "two", "tp2.", ".tp2", "tp2..pp2", "tp2 pp2", "sp2",
                           "one.tp2", "tp99999999999999999999x"})
    test::expect_error(ErrorKind::Usage, "tpN (N ranks share each matrix), ppN",
                       [&] { parse_layout(text); });
  test::expect_error(ErrorKind::Usage, "says twice: tp", [] { parse_layout("tp2.tp2"); });
  test::expect_error(ErrorKind::Usage, "says twice: a schedule",
                     [] { parse_layout("gpipe.1f1b"); });
  test::expect_error(ErrorKind::Usage, "0 to 3", [] { parse_layout("zero9"); });
  test::expect_error(ErrorKind::Usage, "pp0", [] { parse_layout("tp2.pp0"); });
  test::expect_error(ErrorKind::Usage, "dp99999999999999999999",
                     [] { parse_layout("dp99999999999999999999"); });
}

}  // namespace
}  // namespace bev
