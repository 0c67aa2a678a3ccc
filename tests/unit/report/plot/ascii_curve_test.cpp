#include "report/plot/ascii_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace bev {
namespace {

TEST(LossCurve, Draws) {
  std::vector<double> values;
  for (int i = 0; i < 16; ++i) values.push_back(15 - i);
  EXPECT_EQ(loss_curve(values, 72),
            " 15.000 |**\n"
            " 12.857 |  **\n"
            " 10.714 |    **\n"
            "  8.571 |      **\n"
            "  6.429 |        **\n"
            "  4.286 |          **\n"
            "  2.143 |            **\n"
            "  0.000 |              **\n");
}

TEST(LossCurve, TooLittleToDraw) {
  EXPECT_EQ(loss_curve({}, 72), "");
  EXPECT_EQ(loss_curve(std::vector<double>(9, 1.0), 72), "");
  EXPECT_EQ(loss_curve(std::vector<double>(100, NAN), 72), "");
  EXPECT_EQ(loss_curve(std::vector<double>(100, 1.0), 29), "");
}

TEST(LossCurve, AnyValuesInAnyWidth) {
  for (const size_t count : {12u, 63u, 64u, 1000u}) {
    std::vector<double> values(count, 2.0);
    values[3] = NAN;
    values[4] = HUGE_VAL;
    values.back() = -1e300;
    for (size_t columns = 30; columns < 100; ++columns) {
      const std::string text = loss_curve(values, columns);
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
      EXPECT_NE(text.find('*'), std::string::npos);
    }
  }
  const std::string flat = loss_curve(std::vector<double>(50, 2.0), 40);
  EXPECT_EQ(flat.substr(0, flat.find('\n')), "  2.000 |" + std::string(31, '*'));
}

TEST(LossCurve, SeveralShareTheScales) {
  std::vector<double> x, falling, flat;
  for (int i = 0; i < 16; ++i) {
    x.push_back(i);
    falling.push_back(14 - i);
    flat.push_back(0);
  }
  const std::vector<LetterCurve> curves{
      {.letter = 'a', .x = x, .y = falling},
      {.letter = 'b', .x = std::span(x).first(8), .y = std::span(flat).first(8)}};
  const std::string text = loss_curves(curves, 72);
  EXPECT_TRUE(text.starts_with(" 14.000 |a")) << text;
  // The shorter one ends half-way, with 8 of 16 columns.
  EXPECT_NE(text.find("bbbbbbbb "), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), 'b'), 8);
  EXPECT_EQ(loss_curves({}, 72), "");
}

}  // namespace
}  // namespace bev
