#include "report/plot/run_figure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/plot/figure.h"
#include "unit/report/plot/xml_check.h"

namespace bev {
namespace {

RunMetrics falling(int64_t iterations, double lowest = 2) {
  RunMetrics metrics;
  metrics.starts.push_back({.iterations = iterations});
  for (int64_t i = 1; i <= iterations; ++i)
    metrics.iterations.push_back({.iteration = i,
                                  .consumed_samples = 8 * i,
                                  .global_batch = 8,
                                  .loss = lowest + 5.0 / static_cast<double>(i),
                                  .grad_norm = 1.0 / static_cast<double>(i),
                                  .learning_rate = 1e-3,
                                  .loss_scale = 1,
                                  .seconds = 0.5,
                                  .tokens_per_second = 8 * 32 / 0.5});
  return metrics;
}

const Panel& panel_of(const Figure& figure, std::string_view title) {
  for (const Panel& panel : figure.panels)
    if (panel.title == title) return panel;
  throw std::out_of_range(std::string(title));
}

TEST(RunAxis, OfEachKind) {
  const RunMetrics metrics = falling(10);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Iterations).positions().back(), 10);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Samples).positions().back(), 80);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Tokens).positions().back(), 80 * 32);
  EXPECT_DOUBLE_EQ(RunAxis(metrics, PlotAxis::Hours).positions().back(), 5.0 / 3600);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Samples).after(3), 24);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Samples).after(0), 8);
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Samples).after(99), 80);
}

TEST(RunAxis, NeverGoesBackAndSaysWhatItDoesNotKnow) {
  RunMetrics metrics = falling(4);
  metrics.iterations[2].consumed_samples = 3;
  metrics.iterations[1].seconds = NAN;
  metrics.iterations[3].seconds = -7;
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Samples).positions(), (std::vector<double>{8, 16, 16, 32}));
  EXPECT_EQ(RunAxis(metrics, PlotAxis::Hours).positions().back(), 1.0 / 3600);
  for (IterationPoint& point : metrics.iterations) {
    point.consumed_samples = point.global_batch = 0;
    point.seconds = point.tokens_per_second = NAN;
  }
  EXPECT_TRUE(RunAxis(metrics, PlotAxis::Iterations).is_known());
  for (const PlotAxis axis : {PlotAxis::Samples, PlotAxis::Tokens, PlotAxis::Hours})
    EXPECT_FALSE(RunAxis(metrics, axis).is_known());
}

TEST(RunSummary, SaysItInALine) {
  RunMetrics metrics = falling(1000);
  metrics.starts[0].iterations = 3000;
  metrics.validations.push_back({.iteration = 1000, .loss = 2.25});
  metrics.iterations[10].loss = NAN;
  metrics.iterations[10].applied = false;
  metrics.iterations[500].loss = 1.5;
  EXPECT_EQ(summary_of(metrics),
            "1,000 of 3,000 iterations, loss 7.0000 -> 2.0050 (best 1.5000 at 501), 1 without a "
            "finite loss, validation 2.2500, 1 update skipped, 256,000 tokens");
  EXPECT_EQ(short_summary_of(metrics), "loss 2.0050, validation 2.2500, 1,000 iterations");
  metrics = falling(1);
  metrics.starts.clear();
  metrics.iterations[0] = {.iteration = 1, .loss = NAN, .seconds = NAN, .tokens_per_second = NAN};
  EXPECT_EQ(summary_of(metrics), "1 iteration, no finite loss");
  EXPECT_EQ(short_summary_of(metrics), "no finite loss, 1 iteration");
}

// Fails when a model with several losses shows their sum only, or a run without one of them breaks
// the panel.
TEST(RunFigure, HasAPanelForEachOfSeveralLosses) {
  RunMetrics bert = falling(50), gpt = falling(50);
  bert.loss_names = {"lm", "sop"};
  gpt.loss_names = {"lm"};
  for (IterationPoint& point : bert.iterations) {
    point.losses[0] = point.loss - 0.5;
    point.losses[1] = 0.5;
  }
  for (IterationPoint& point : gpt.iterations) point.losses[0] = point.loss;
  bert.validations = {{.iteration = 50, .loss = 2.5, .losses = {2, 0.5}}};
  std::vector<PlottedRun> runs{{.name = "bert", .metrics = bert}};
  const Figure figure = figure_of(runs, {.smooth = 1});
  ASSERT_EQ(figure.panels.size(), 6U);
  EXPECT_EQ(figure.panels[0].remark, "sum of lm, sop; dots: validation");
  EXPECT_EQ(figure.panels[1].title, "lm loss");
  EXPECT_EQ(figure.panels[2].title, "sop loss");
  EXPECT_EQ(figure.panels[1].lines[0].y[3], bert.iterations[3].loss - 0.5);
  EXPECT_EQ(figure.panels[2].lines[0].y[3], 0.5);
  ASSERT_EQ(figure.panels[2].dots.size(), 1U);
  EXPECT_EQ(figure.panels[2].dots[0].y, 0.5);
  EXPECT_EQ(figure.read_out.columns[4], "sop loss");
  EXPECT_EQ(figure.read_out.rows[0][0][4], 0.5);
  runs.push_back({.name = "gpt", .metrics = gpt});
  const Figure both = figure_of(runs, {.smooth = 1});
  EXPECT_EQ(both.panels[1].lines.size(), 2U);
  EXPECT_EQ(both.panels[2].lines.size(), 1U);
  EXPECT_TRUE(std::isnan(both.read_out.rows[1][0][4]));
}

// Fails when an accuracy has no panel, or counts as a part of the loss.
TEST(RunFigure, HasAPanelForEachAccuracy) {
  RunMetrics metrics = falling(50);
  metrics.loss_names = {"retrieval", "top1_accuracy"};
  for (IterationPoint& point : metrics.iterations) {
    point.losses[0] = point.loss;
    point.losses[1] = 40;
  }
  const std::vector<PlottedRun> runs{{.name = "ict", .metrics = metrics}};
  const Figure figure = figure_of(runs, {.smooth = 1});
  ASSERT_EQ(figure.panels.size(), 5U);
  EXPECT_EQ(figure.panels[0].remark, "nats");
  EXPECT_EQ(figure.panels[1].title, "top1_accuracy");
  EXPECT_EQ(figure.panels[1].lines[0].y[3], 40);
  EXPECT_EQ(figure.read_out.columns[3], "top1_accuracy");
}

TEST(RunFigure, HasFourPanels) {
  RunMetrics metrics = falling(600);
  metrics.validations = {{.iteration = 300, .loss = 2.5}, {.iteration = 600, .loss = NAN}};
  const std::vector<PlottedRun> runs{{.name = "one", .metrics = metrics}};
  const Figure figure = figure_of(runs, {});
  ASSERT_EQ(figure.panels.size(), 4u);
  EXPECT_EQ(figure.title, "one");
  EXPECT_EQ(figure.x, (Range{0, 600}));
  const Panel& loss = panel_of(figure, kLossTitle);
  ASSERT_EQ(loss.lines.size(), 2u);
  EXPECT_EQ(loss.lines[0].style, LineStyle::Faint);
  EXPECT_EQ(loss.lines[0].y[1], 4.5);
  ASSERT_EQ(loss.dots.size(), 1u);
  EXPECT_EQ(loss.dots[0].x, 300);
  EXPECT_EQ(panel_of(figure, "gradient norm").kind, ScaleKind::Log);
  EXPECT_EQ(panel_of(figure, "tokens per second").linear->low, 0);
  EXPECT_EQ(panel_of(figure, "learning rate").linear->low, 0);
}

TEST(RunFigure, FollowsItsOptions) {
  const std::vector<PlottedRun> runs{{.name = "one", .metrics = falling(600)},
                                     {.name = "two", .metrics = falling(300, 1)}};
  EXPECT_EQ(mean_width(runs, {}), 9);
  EXPECT_EQ(mean_width(runs, {.smooth = 4}), 4);
  const std::vector<PlottedRun> long_run{{.name = "long", .metrics = falling(100000)}};
  EXPECT_EQ(mean_width(long_run, {}), 1001);
  EXPECT_EQ(mean_width(runs, {.from = 10, .to = 60}), 1);
  const Figure part = figure_of(runs, {.smooth = 1, .from = 100, .to = 200, .log = true});
  const Panel& loss = panel_of(part, kLossTitle);
  EXPECT_EQ(loss.kind, ScaleKind::Log);
  ASSERT_EQ(loss.lines.size(), 2u);
  EXPECT_EQ(loss.lines[0].x.front(), 100);
  EXPECT_EQ(loss.lines[1].x.back(), 200);
  EXPECT_EQ(part.x, (Range{100, 200}));
  // Places count from the start of the run, not of what is drawn.
  EXPECT_EQ(figure_of(runs, {.axis = PlotAxis::Samples, .from = 100}).x.low, 800);
}

TEST(RunFigure, ASpikeDoesNotDecideTheRange) {
  RunMetrics metrics = falling(600);
  metrics.iterations[300].loss = 1000;
  const Figure figure = figure_of(std::vector<PlottedRun>{{.name = "one", .metrics = metrics}}, {});
  EXPECT_LT(panel_of(figure, kLossTitle).linear->high, 8);
  EXPECT_LT(panel_of(figure, kLossTitle).log->high, 8);
  EXPECT_EQ(panel_of(figure, kLossTitle).lines[0].y[300], 1000);
}

TEST(RunFigure, TheDifferenceToTheFirst) {
  std::vector<PlottedRun> runs{{.name = "one", .metrics = falling(50)},
                               {.name = "two", .metrics = falling(60, 2.5)}};
  runs[1].metrics.iterations.erase(runs[1].metrics.iterations.begin() + 3);
  const Figure figure = figure_of(runs, {.smooth = 1, .difference = true});
  const Panel& panel = panel_of(figure, "difference");
  ASSERT_EQ(panel.lines.size(), 2u);
  ASSERT_EQ(panel.lines[1].y.size(), 49u);
  for (const double value : panel.lines[1].y) EXPECT_NEAR(value, 0.5, 1e-12);
  EXPECT_EQ(panel.lines[1].x[3], 5);
}

TEST(RunFigure, MarksWhatHappened) {
  RunMetrics metrics = falling(50);
  metrics.iterations[4].applied = false;
  metrics.notes = {{.iteration = 20, .event = "end", .text = "stopped"},
                   {.iteration = 3, .event = "guard", .text = "spike"},
                   {.iteration = 50, .event = "end", .text = "complete"}};
  const Figure figure = figure_of(std::vector<PlottedRun>{{.name = "one", .metrics = metrics}}, {});
  const std::vector<Mark>& marks = panel_of(figure, kLossTitle).marks;
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_EQ(marks[0].text, "iteration 3, guard: spike");
  EXPECT_EQ(marks[1].text, "iteration 5: the update was skipped");
  EXPECT_EQ(marks[2].text, "iteration 20, end: stopped");
  EXPECT_EQ(figure.notes.size(), 3u);
}

TEST(RunFigure, AnyNumbersAreDrawn) {
  const double none = NAN, huge = 1e308, tiny = 1e-310;
  for (const double a : {none, HUGE_VAL, -HUGE_VAL, huge, -huge, tiny, -tiny, 0.0, 1.0}) {
    for (const double b : {none, -huge, 2.0}) {
      for (const int64_t count : {1, 50}) {
        RunMetrics metrics = falling(count);
        for (size_t i = 0; i < metrics.iterations.size(); ++i) {
          IterationPoint& point = metrics.iterations[i];
          point.loss = point.grad_norm = point.learning_rate = i % 2 == 0 ? a : b;
          point.tokens_per_second = point.seconds = point.loss;
        }
        metrics.validations = {{.iteration = 1, .loss = a}};
        for (const PlotAxis axis : {PlotAxis::Iterations, PlotAxis::Hours}) {
          const std::vector<PlottedRun> runs{{.name = "x", .metrics = metrics},
                                             {.name = "y", .metrics = falling(3)}};
          const Figure figure =
              figure_of(runs, {.axis = axis, .smooth = 3, .log = true, .difference = true});
          EXPECT_EQ(test::xml_fault(to_svg(figure)), "") << a << " " << b << " " << count;
          EXPECT_EQ(test::xml_fault(svg_for_page(figure)), "") << a << " " << b << " " << count;
        }
      }
    }
  }
}

TEST(RunFigure, OneIterationIsDrawn) {
  const Figure figure =
      figure_of(std::vector<PlottedRun>{{.name = "one", .metrics = falling(1)}}, {});
  EXPECT_EQ(test::xml_fault(to_svg(figure)), "");
  EXPECT_NE(to_svg(figure).find("h0\"/>"), std::string::npos);
}

TEST(RunFigure, ManyIterationsMakeASmallFile) {
  RunMetrics metrics = falling(50000);
  for (size_t i = 0; i < metrics.iterations.size(); ++i) {
    metrics.iterations[i].loss += static_cast<double>(i * 7919 % 1000) / 1000;
    metrics.iterations[i].grad_norm = 1 + static_cast<double>(i * 104729 % 1000) / 100;
    metrics.iterations[i].applied = i % 3 != 0;
  }
  const Figure figure = figure_of(std::vector<PlottedRun>{{.name = "one", .metrics = metrics}}, {});
  EXPECT_LT(to_svg(figure).size(), 200'000u);
  EXPECT_LT(to_html(figure).size(), 400'000u);
}

}  // namespace
}  // namespace bev
