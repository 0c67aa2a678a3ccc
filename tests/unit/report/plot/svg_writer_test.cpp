#include <gtest/gtest.h>

#include <cmath>

#include "report/plot/figure.h"
#include "report/plot/svg_text.h"
#include "support/expect_error.h"
#include "unit/report/plot/xml_check.h"

namespace bev {
namespace {

size_t count_of(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

Figure small_figure() {
  return {.title = "run <1> & \"2\"",
          .x_label = "iterations",
          .x = {0, 10},
          .runs = {{.name = "first", .remark = "loss 1"}, {.name = "second <b>"}},
          .panels = {{.title = "loss",
                      .shape = PanelShape::Tall,
                      .linear = Range{0, 10},
                      .log = Range{1, 10},
                      .lines = {{.run = 0, .x = {0, 5, 10}, .y = {10, 5, 1}},
                                {.run = 1, .x = {0, 5, 10}, .y = {9, NAN, 2}}},
                      .dots = {{.run = 0, .x = 5, .y = 4, .text = "validation 4"}},
                      .marks = {{.run = 0, .x = 5, .text = "spike <&>"}}}},
          .read_out = {.columns = {"iterations", "loss"},
                       .rows = {{{0, 10}, {5, 5}}, {{0, NAN}, {10, 0.123456789}}}},
          .notes = {"iteration 5: spike <&>"}};
}

TEST(XmlCheck, FindsFaults) {
  EXPECT_EQ(test::xml_fault("<a b=\"1\"><c/>x &lt; y</a>\n"), "");
  for (const char* bad : {"", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a b=1/>",
                          "<a b=\"1\" b=\"2\"/>", "<a>x & y</a>", "<a b=\"nan\"/>",
                          "<a d=\"M1,inf\"/>", "<a>\x01</a>", "x<a/>", "<a b=\"<\"/>"})
    EXPECT_NE(test::xml_fault(bad), "") << bad;
}

TEST(Draw, IsWellFormed) {
  EXPECT_EQ(test::xml_fault(to_svg(small_figure())), "");
  EXPECT_EQ(test::xml_fault(svg_for_page(small_figure())), "");
}

TEST(Draw, PutsPointsWhereTheScalesSay) {
  const std::string svg = to_svg(small_figure());
  // The panel spans 66 to 936 from left to right; half-way up at half its height.
  EXPECT_EQ(count_of(svg, "data-left=\"66\""), 1u);
  const size_t top_at = svg.find("data-top=\"");
  const double top = std::stod(svg.substr(top_at + 10));
  const std::string path = "M66," + coordinate(top) + "h0L501," + coordinate(top + 150) + "L936," +
                           coordinate(top + 270);
  EXPECT_EQ(count_of(svg, path), 1u) << path << "\n" << svg;
}

TEST(Draw, AGapIsLeftInTheLine) {
  Figure figure = small_figure();
  figure.panels[0].lines = {{.run = 1, .x = {0, 5, 10}, .y = {9, NAN, 2}}};
  const std::string svg = to_svg(figure);
  const size_t line = svg.find("<path class=\"line s1\" d=\"M66");
  ASSERT_NE(line, std::string::npos) << svg;
  const std::string path = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(count_of(path, "M"), 2u) << path;
  EXPECT_EQ(count_of(path, "L"), 0u) << path;
}

TEST(Draw, SaysWhatHappened) {
  const std::string svg = to_svg(small_figure());
  EXPECT_EQ(count_of(svg, "<title>validation 4</title>"), 1u);
  EXPECT_EQ(count_of(svg, "<title>spike &lt;&amp;&gt;</title>"), 1u);
  EXPECT_EQ(count_of(svg, "second &lt;b&gt;"), 1u);
}

TEST(Draw, MarksThatCoverEachOtherBecomeOne) {
  Figure figure = small_figure();
  figure.panels[0].marks.clear();
  for (int i = 0; i < 100000; ++i)
    figure.panels[0].marks.push_back({.run = 0, .x = i / 10000.0, .text = "skipped"});
  const std::string svg = to_svg(figure);
  EXPECT_LE(count_of(svg, "class=\"mark"), 180u);
  EXPECT_GE(count_of(svg, "class=\"mark"), 100u);
  EXPECT_NE(svg.find("in all here"), std::string::npos);
  EXPECT_EQ(test::xml_fault(svg), "");
}

TEST(Draw, OutsideOfThePanelNothingIsHuge) {
  Figure figure = small_figure();
  figure.panels[0].lines = {{.run = 0, .x = {0, 5, 10}, .y = {1e300, -1e300, 1}}};
  const std::string svg = to_svg(figure);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_EQ(svg.find("000000"), std::string::npos);
}

TEST(Draw, BothScalesOnlyOnAPage) {
  Figure figure = small_figure();
  EXPECT_EQ(count_of(to_svg(figure), "<g class=\"log\">"), 0u);
  EXPECT_EQ(count_of(svg_for_page(figure), "<g class=\"log\">"), 1u);
  EXPECT_EQ(count_of(svg_for_page(figure), "<g class=\"linear\">"), 1u);
  figure.panels[0].log.reset();
  EXPECT_EQ(count_of(svg_for_page(figure), "<g class=\"linear\">"), 0u);
}

TEST(Page, IsOneFileThatNeedsNoOther) {
  const std::string page = to_html(small_figure());
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(count_of(page, "http"), count_of(page, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(count_of(page, "src="), 0u);
  EXPECT_EQ(count_of(page, "href="), 0u);
  EXPECT_EQ(count_of(page, "@import"), 0u);
  EXPECT_EQ(count_of(page, "prefers-color-scheme: dark"), 1u);
  EXPECT_EQ(count_of(page, "<title>run &lt;1&gt; &amp; &quot;2&quot;</title>"), 1u);
  EXPECT_EQ(count_of(page, "<li>iteration 5: spike &lt;&amp;&gt;</li>"), 1u);
}

TEST(Page, TheChoiceOfTheScaleIsThereWhereThereAreTwo) {
  Figure figure = small_figure();
  EXPECT_EQ(count_of(to_html(figure), "type=\"checkbox\" id=\"log\">"), 1u);
  figure.panels[0].kind = ScaleKind::Log;
  EXPECT_EQ(count_of(to_html(figure), "type=\"checkbox\" id=\"log\" checked>"), 1u);
  figure.panels[0].kind = ScaleKind::Linear;
  figure.panels[0].log.reset();
  EXPECT_EQ(count_of(to_html(figure), "type=\"checkbox\""), 0u);
}

TEST(Page, NumbersUnderThePointer) {
  const std::string page = to_html(small_figure());
  EXPECT_NE(page.find("\"rows\":[[[0,10],[5,5]],\n[[0,null],[10,0.12346]]]"), std::string::npos);
  // A name cannot end the script.
  EXPECT_NE(page.find("\"runs\":[\"first\",\"second \\u003cb>\"]"), std::string::npos);
}

TEST(SvgText, Escapes) {
  EXPECT_EQ(escaped("a<b>&\"c\" \xC3\xA4"), "a&lt;b&gt;&amp;&quot;c&quot; \xC3\xA4");
  EXPECT_EQ(escaped(std::string_view("\x01\xFF\xC3", 3)), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(SvgText, Shortens) {
  EXPECT_EQ(shortened("four", 4), "four");
  EXPECT_EQ(shortened("fives", 4), "fiv\xE2\x80\xA6");
  EXPECT_EQ(shortened("\xC3\xA4\xC3\xA4\xC3\xA4", 2), "\xC3\xA4\xE2\x80\xA6");
}

TEST(SvgText, Coordinates) {
  EXPECT_EQ(coordinate(1.25), "1.2");
  EXPECT_EQ(coordinate(3), "3");
  EXPECT_EQ(coordinate(-0.01), "0");
  test::expect_error(ErrorKind::Internal, "coordinate", [] { coordinate(NAN); });
}

}  // namespace
}  // namespace bev
