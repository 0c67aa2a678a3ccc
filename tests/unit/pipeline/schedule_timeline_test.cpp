#include "pipeline/schedule_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/format.h"
#include "pipeline/schedule.h"

namespace bev {
namespace {

std::string text_of(ScheduleKind kind, const PipelineShape& shape, int columns = 160) {
  return render_text(build_schedule(kind, shape), shape, {}, columns);
}

TEST(Timeline, TextOfSmallShapes) {
  EXPECT_EQ(text_of(ScheduleKind::OneFOneB, {2, 1, 3}),
            "rank 0 0 1 . . 0B==2 1B==. 2B==\n"
            "rank 1 . 0 0B==1 1B==2 2B==. .\n"
            "3 forward, 3B backward, = continued, . idle; a cell is 1\n"
            "bubble 33.33 %, slots 2 1\n");
  EXPECT_EQ(text_of(ScheduleKind::ZeroBubble, {2, 1, 3}),
            "rank 0 0 1 . 0B0w2 1B1w2B2w\n"
            "rank 1 . 0 0B1 1B0w2 2B1w2w\n"
            "3 forward, 3B backward of inputs, 3w of weights, = continued, . idle; a cell is 1\n"
            "bubble 11.11 %, slots 2 2\n");
  EXPECT_EQ(text_of(ScheduleKind::Interleaved, {2, 2, 2}),
            "rank 0 0a1a0b1b. . 0B==. 1B==0A==1A==\n"
            "rank 1 . 0a1a0b0B==1b1B==0A==1A==. .\n"
            "3a 3b forward of chunks 0 and 1, 3A 3B backward, = continued, . idle; a cell is 1\n"
            "bubble 25 %, slots 4 3\n");
}

TEST(Timeline, TextOfForwardsAlone) {
  const PipelineShape shape{2, 1, 2};
  EXPECT_EQ(render_text(forward_only(shape), shape),
            "rank 0 01.\n"
            "rank 1 .01\n"
            "3 forward, = continued, . idle; a cell is 1\n"
            "bubble 50 %, slots 1 1\n");
}

// Cells are the shortest act long; the forward takes two of them here.
TEST(Timeline, TextFollowsTheCosts) {
  const PipelineShape shape{1, 1, 2};
  EXPECT_EQ(render_text(build_schedule(ScheduleKind::ZeroBubble, shape), shape,
                        std::vector{StageCosts{.backward_weight = 0.5}}),
            "rank 0 0===0B==0w1===1B==1w\n"
            "3 forward, 3B backward of inputs, 3w of weights, = continued, . idle; a cell is 0.5\n"
            "bubble 0 %, slots 1\n");
}

TEST(Timeline, LongRowsLoseTheirMiddle) {
  const std::string text = text_of(ScheduleKind::ZeroBubble, {2, 1, 40}, 60);
  EXPECT_EQ(text,
            "rank 0 0  1  .  0B 0w 2  1B 1w ~  38 37B37w39 38B38w39B39w\n"
            "rank 1 .  0  0B 1  1B 0w 2  2B ~  36w38 38B37w39 39B38w39w\n"
            "~ 105 of 121 cells are left out\n"
            "3 forward, 3B backward of inputs, 3w of weights, = continued, . idle; a cell is 1\n"
            "bubble 0.8333 %, slots 2 2\n");
}

TEST(Timeline, BrokenProgramsHaveNoPicture) {
  const PipelineShape shape{2, 1, 2};
  std::vector<Program> programs = build_schedule(ScheduleKind::OneFOneB, shape);
  programs[1].clear();
  EXPECT_THROW(render_text(programs, shape), Error);
  EXPECT_THROW(render_svg(programs, shape), Error);
}

// Every tag is closed in its turn, and no text outside of tags holds a bare < or &.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  int roots = 0;
  size_t at = 0;
  while (at < xml.size()) {
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) + 1 - at);
      EXPECT_TRUE(entity == "&amp;" || entity == "&lt;" || entity == "&gt;" || entity == "&quot;")
          << entity;
    }
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    const std::string name = tag.substr(0, tag.find(' '));
    if (name.starts_with('/')) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ("/" + open.back(), name);
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      roots += open.empty() ? 1 : 0;
      open.push_back(name);
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(roots, 1);
}

size_t occurrences(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Timeline, SvgShowsEveryComputation) {
  const PipelineShape shape{3, 2, 4};
  const std::string svg =
      render_svg(build_schedule(ScheduleKind::Interleaved, shape), shape, {}, "a < b & \"c\"");
  expect_well_formed(svg);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;: bubble"), std::string::npos);
  for (int micro = 0; micro < 4; ++micro) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (const std::string_view act : {"forward", "backward"}) {
        EXPECT_EQ(occurrences(svg, format("{} of micro-batch {}, chunk {},", act, micro, chunk)),
                  3U);
      }
    }
    EXPECT_GE(occurrences(svg, format(">{}</text>", micro)), 12U);
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_NE(svg.find(format(">rank {}</text>", rank)), std::string::npos);
  }
}

TEST(Timeline, SvgOfEveryKindIsWellFormed) {
  for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB,
                                  ScheduleKind::Interleaved, ScheduleKind::ZeroBubble}) {
    const PipelineShape shape{4, 1, 8};
    const std::string svg = render_svg(build_schedule(kind, shape), shape);
    expect_well_formed(svg);
    const bool split = kind == ScheduleKind::ZeroBubble;
    EXPECT_EQ(occurrences(svg, "#ec9b3b"), split ? 8 * 4 + 1U : 0U) << "weights, and the legend";
    EXPECT_EQ(occurrences(svg, "#4a86e8"), 8 * 4 + 1U);
  }
}

}  // namespace
}  // namespace bev
