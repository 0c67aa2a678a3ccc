#include "report/plot/run_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "base/format.h"
#include "model/losses.h"
#include "report/plot/figure.h"

namespace bev {

namespace {

constexpr size_t kReadOutRows = 700;
constexpr size_t kNotesInWords = 300;

using Member = double IterationPoint::*;

// The part of a run between two iterations.
class RunCurve {
 public:
  RunCurve(const RunMetrics& metrics, const PlotOptions& options, int64_t width)
      : metrics_(metrics), axis_(metrics, options.axis), from_(options.from), to_(options.to) {
    for (size_t i = 0; i < metrics.iterations.size(); ++i) {
      if (!has(metrics.iterations[i].iteration)) continue;
      points.push_back(metrics.iterations[i]);
      x.push_back(axis_.positions()[i]);
    }
    loss = values(&IterationPoint::loss);
    mean_loss = smoothed(loss, width);
  }

  bool has(int64_t iteration) const { return iteration >= from_ && iteration <= to_; }
  double after(int64_t iteration) const { return axis_.after(iteration); }
  const RunMetrics& metrics() const { return metrics_; }

  std::vector<double> values(Member member) const {
    std::vector<double> found;
    found.reserve(points.size());
    for (const IterationPoint& point : points) found.push_back(point.*member);
    return found;
  }
  // The values of one loss; empty if the run has none of this name.
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> found;
    if (const std::optional<size_t> index = index_of(name))
      for (const IterationPoint& point : points) found.push_back(point.losses[*index]);
    return found;
  }
  std::optional<size_t> index_of(const std::string& name) const {
    const std::vector<std::string>& names = metrics_.loss_names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<size_t>(found - names.begin());
  }

  std::vector<IterationPoint> points;
  std::vector<double> x, loss, mean_loss;

 private:
  const RunMetrics& metrics_;
  RunAxis axis_;
  int64_t from_, to_;
};

using RunCurves = std::span<const RunCurve>;

bool is_empty(const Range& range) { return range.low > range.high; }

Range joined(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// What is left of nothing and of a single value becomes a range, too.
Range with_margin(const Range& range) {
  const double span = range.high - range.low;
  // Beyond any number that is drawn; a scale needs the difference to be finite.
  if (!(std::abs(range.low) < 1e150 && std::abs(range.high) < 1e150)) return {-1e150, 1e150};
  const double margin = span > 1e-12 * std::abs(range.high)
                            ? 0.04 * span
                            : std::max(0.05 * std::abs(range.high), 1e-30);
  return {range.low - margin, range.high + margin};
}

Range with_log_margin(const Range& range) {
  const double low = std::clamp(range.low, 1e-150, 1e150);
  const double high = std::clamp(range.high, low, 1e150);
  const double factor = std::max(std::pow(high / low, 0.04), 1.02);
  return {low / factor, high * factor};
}

// Both scales of what the lines and dots of a panel show; without any value, none. A mean spreads
// an outlier over many iterations: where the values themselves are drawn, they decide.
void set_ranges(Panel& panel) {
  const bool has_faint = std::any_of(panel.lines.begin(), panel.lines.end(), [](const Line& line) {
    return line.style == LineStyle::Faint;
  });
  for (const bool is_positive : {false, true}) {
    Range range{.low = HUGE_VAL, .high = -HUGE_VAL};
    for (const Line& line : panel.lines)
      if (!has_faint || line.style == LineStyle::Faint)
        range = joined(range, typical_range(line.y, is_positive));
    for (const Dot& dot : panel.dots)
      if (std::isfinite(dot.y) && (!is_positive || dot.y > 0))
        range = joined(range, {dot.y, dot.y});
    if (is_empty(range)) continue;
    if (is_positive)
      panel.log = with_log_margin(range);
    else
      panel.linear = with_margin(range);
  }
  if (panel.kind == ScaleKind::Log && !panel.log) panel.kind = ScaleKind::Linear;
}

// The names of the losses that the runs have, if a run has several, and those of accuracies.
std::vector<std::string> single_losses(RunCurves parts) {
  std::vector<std::string> names;
  int64_t most = 0;
  for (const RunCurve& part : parts) {
    const std::vector<std::string>& all = part.metrics().loss_names;
    most = std::max<int64_t>(most, std::ranges::count(all, false, is_accuracy));
    for (const std::string& name : all)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (most < 2) std::erase_if(names, std::not_fn(is_accuracy));
  return names;
}

Panel loss_panel(RunCurves parts, int64_t width, bool is_log) {
  std::vector<std::string> losses = single_losses(parts);
  const bool has_accuracies = std::erase_if(losses, is_accuracy) > 0;
  std::string unit = !losses.empty() ? "sum of" : has_accuracies ? "nats" : "nats per token";
  for (size_t i = 0; i < losses.size(); ++i) unit += format("{} {}", i == 0 ? "" : ",", losses[i]);
  Panel panel{.title = std::string(kLossTitle),
              .remark = width > 1
                            ? format("{}; line: mean of {} iterations", unit, with_commas(width))
                            : unit,
              .shape = PanelShape::Tall,
              .kind = is_log ? ScaleKind::Log : ScaleKind::Linear};
  bool has_dots = false;
  for (size_t run = 0; run < parts.size(); ++run) {
    const RunCurve& part = parts[run];
    if (width > 1)
      panel.lines.push_back({.run = run, .style = LineStyle::Faint, .x = part.x, .y = part.loss});
    panel.lines.push_back({.run = run, .x = part.x, .y = part.mean_loss});
    for (const EvaluationPoint& v : part.metrics().validations) {
      if (!part.has(v.iteration) || !std::isfinite(v.loss)) continue;
      panel.dots.push_back({.run = run,
                            .x = part.after(v.iteration),
                            .y = v.loss,
                            .text = format("validation after iteration {}: {:.4f}",
                                           with_commas(v.iteration), v.loss)});
      has_dots = true;
    }
  }
  if (has_dots) panel.remark += "; dots: validation";
  set_ranges(panel);
  return panel;
}

std::vector<std::string> add_marks(RunCurves parts, std::span<const PlottedRun> runs,
                                   Panel& panel) {
  std::vector<std::string> words;
  for (size_t run = 0; run < parts.size(); ++run) {
    std::vector<std::pair<int64_t, std::string>> found;
    for (const RunNote& note : parts[run].metrics().notes)
      // An end that nothing follows is no news.
      if (parts[run].has(note.iteration) &&
          (note.event != "end" || note.iteration < parts[run].points.back().iteration))
        found.emplace_back(
            note.iteration,
            format("iteration {}, {}: {}", with_commas(note.iteration), note.event, note.text));
    for (const IterationPoint& point : parts[run].points)
      if (!point.applied)
        found.emplace_back(point.iteration, format("iteration {}: the update was skipped",
                                                   with_commas(point.iteration)));
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [iteration, text] : found) {
      panel.marks.push_back({.run = run, .x = parts[run].after(iteration), .text = text});
      if (words.size() < kNotesInWords)
        words.push_back(runs.size() > 1 ? format("{}: {}", runs[run].name, text) : text);
    }
  }
  if (panel.marks.size() > words.size())
    words.push_back(format("... and {} more",
                           with_commas(static_cast<int64_t>(panel.marks.size() - words.size()))));
  if (!panel.marks.empty()) panel.remark += "; triangles: something happened";
  return words;
}

Panel small_panel(RunCurves parts, std::string title, std::string remark, Member member,
                  int64_t width) {
  Panel panel{.title = std::move(title), .remark = std::move(remark)};
  for (size_t run = 0; run < parts.size(); ++run) {
    const std::vector<double> values = parts[run].values(member);
    if (width > 1)
      panel.lines.push_back(
          {.run = run, .style = LineStyle::Faint, .x = parts[run].x, .y = values});
    panel.lines.push_back({.run = run, .x = parts[run].x, .y = smoothed(values, width)});
  }
  set_ranges(panel);
  return panel;
}

// One of several losses, with its validations.
Panel single_loss_panel(RunCurves parts, const std::string& name, int64_t width) {
  Panel panel{.title = label_of_loss(name)};
  for (size_t run = 0; run < parts.size(); ++run) {
    const RunCurve& part = parts[run];
    const std::vector<double> values = part.losses(name);
    if (values.empty()) continue;
    if (width > 1)
      panel.lines.push_back({.run = run, .style = LineStyle::Faint, .x = part.x, .y = values});
    panel.lines.push_back({.run = run, .x = part.x, .y = smoothed(values, width)});
    const size_t index = *part.index_of(name);
    for (const EvaluationPoint& v : part.metrics().validations) {
      if (!part.has(v.iteration) || !std::isfinite(v.losses[index])) continue;
      panel.dots.push_back(
          {.run = run,
           .x = part.after(v.iteration),
           .y = v.losses[index],
           .text = format("validation after iteration {}: {} {:.4f}", with_commas(v.iteration),
                          label_of_loss(name), v.losses[index])});
    }
  }
  if (!panel.dots.empty()) panel.remark = "dots: validation";
  set_ranges(panel);
  return panel;
}

// A quantity that is never negative is shown from 0 on.
Panel from_zero(Panel panel) {
  panel.log.reset();
  if (panel.linear && panel.linear->high > 0) panel.linear->low = 0;
  return panel;
}

Panel norm_panel(RunCurves parts, int64_t width) {
  Panel panel =
      small_panel(parts, "gradient norm", "logarithmic", &IterationPoint::grad_norm, width);
  if (panel.log) {
    panel.kind = ScaleKind::Log;
    panel.linear.reset();
  }
  return panel;
}

// The means of both at the iterations that both have.
Panel difference_panel(RunCurves parts, const std::string& first_name) {
  Panel panel{.title = "difference",
              .remark = format("mean loss minus that of {}", first_name),
              .shape = PanelShape::Flat};
  const RunCurve& first = parts[0];
  panel.lines.push_back({.run = 0, .x = first.x, .y = std::vector<double>(first.x.size(), 0.0)});
  for (size_t run = 1; run < parts.size(); ++run) {
    Line line{.run = run};
    size_t other = 0;
    for (size_t i = 0; i < parts[run].points.size(); ++i) {
      const int64_t iteration = parts[run].points[i].iteration;
      while (other < first.points.size() && first.points[other].iteration < iteration) ++other;
      if (other == first.points.size()) break;
      if (first.points[other].iteration != iteration) continue;
      line.x.push_back(parts[run].x[i]);
      line.y.push_back(parts[run].mean_loss[i] - first.mean_loss[other]);
    }
    panel.lines.push_back(std::move(line));
  }
  set_ranges(panel);
  panel.log.reset();
  return panel;
}

ReadOut read_out(RunCurves parts, std::string_view axis, bool has_mean) {
  ReadOut out{.columns = {std::string(axis), "iteration", "loss"}};
  if (has_mean) out.columns.emplace_back("mean loss");
  const std::vector<std::string> losses = single_losses(parts);
  for (const std::string& name : losses) out.columns.push_back(label_of_loss(name));
  for (const char* name : {"learning rate", "gradient norm", "tokens/s"})
    out.columns.emplace_back(name);
  for (const RunCurve& part : parts) {
    std::vector<std::vector<double>> singles;
    for (const std::string& name : losses) singles.push_back(part.losses(name));
    std::vector<std::vector<double>> rows;
    const size_t count = std::min(part.points.size(), kReadOutRows);
    for (size_t row = 0; row < count; ++row) {
      const size_t i = (row + 1) * part.points.size() / count - 1;
      const IterationPoint& point = part.points[i];
      std::vector<double> numbers{part.x[i], static_cast<double>(point.iteration), part.loss[i]};
      if (has_mean) numbers.push_back(part.mean_loss[i]);
      for (const std::vector<double>& single : singles)
        numbers.push_back(single.empty() ? std::nan("") : single[i]);
      for (const Member member : {&IterationPoint::learning_rate, &IterationPoint::grad_norm,
                                  &IterationPoint::tokens_per_second})
        numbers.push_back(point.*member);
      rows.push_back(std::move(numbers));
    }
    out.rows.push_back(std::move(rows));
  }
  return out;
}

Range axis_range(RunCurves parts) {
  Range range{.low = HUGE_VAL, .high = -HUGE_VAL};
  for (const RunCurve& part : parts) range = joined(range, {part.x.front(), part.x.back()});
  // A run that is shown from its start is shown from 0 on.
  if (range.low < 0.05 * range.high) range.low = 0;
  if (range.low == range.high) range.high = range.low + std::max(1e-6, 0.01 * range.low);
  return range;
}

}  // namespace

int64_t mean_width(std::span<const PlottedRun> runs, const PlotOptions& options) {
  if (options.smooth > 0) return options.smooth;
  int64_t longest = 0;
  for (const PlottedRun& run : runs)
    longest = std::max<int64_t>(
        longest, std::count_if(run.metrics.iterations.begin(), run.metrics.iterations.end(),
                               [&](const IterationPoint& point) {
                                 return point.iteration >= options.from &&
                                        point.iteration <= options.to;
                               }));
  const int64_t width = std::min<int64_t>(longest / 60, 1001);
  // Odd, because it lies around an iteration.
  return width < 3 ? 1 : width - 1 + width % 2;
}

Figure figure_of(std::span<const PlottedRun> runs, const PlotOptions& options) {
  const int64_t width = mean_width(runs, options);
  std::vector<RunCurve> parts;
  for (const PlottedRun& run : runs) parts.emplace_back(run.metrics, options, width);
  Figure figure{.title = runs.size() == 1 ? runs[0].name : format("{} runs", runs.size()),
                .x_label = std::string(label_of(options.axis)),
                .x = axis_range(parts)};
  for (const PlottedRun& run : runs)
    figure.runs.push_back({.name = run.name, .remark = short_summary_of(run.metrics)});
  std::vector<Panel> panels;
  panels.push_back(loss_panel(parts, width, options.log));
  figure.notes = add_marks(parts, runs, panels[0]);
  if (options.difference && runs.size() > 1)
    panels.push_back(difference_panel(parts, runs[0].name));
  for (const std::string& name : single_losses(parts))
    panels.push_back(single_loss_panel(parts, name, width));
  panels.push_back(
      from_zero(small_panel(parts, "learning rate", "", &IterationPoint::learning_rate, 1)));
  panels.push_back(norm_panel(parts, width));
  panels.push_back(from_zero(
      small_panel(parts, "tokens per second", "", &IterationPoint::tokens_per_second, width)));
  for (Panel& panel : panels)
    if (panel.linear || panel.log) figure.panels.push_back(std::move(panel));
  figure.read_out = read_out(parts, figure.x_label, width > 1);
  return figure;
}

namespace {

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

std::string_view label_of(PlotAxis axis) {
  constexpr std::array<std::string_view, 4> kLabels{"iterations", "samples", "tokens",
                                                    "hours of training"};
  return kLabels[static_cast<size_t>(axis)];
}

RunAxis::RunAxis(const RunMetrics& metrics, PlotAxis axis) {
  const double per_sample = axis == PlotAxis::Tokens ? tokens_per_sample(metrics) : 1;
  double position = 0, seconds = 0;
  for (const IterationPoint& point : metrics.iterations) {
    seconds += std::max(0.0, finite_or_zero(point.seconds));
    double here = 0;
    switch (axis) {
      case PlotAxis::Iterations: here = static_cast<double>(point.iteration); break;
      case PlotAxis::Samples:
      case PlotAxis::Tokens: here = static_cast<double>(point.consumed_samples) * per_sample; break;
      case PlotAxis::Hours: here = finite_or_zero(seconds / 3600); break;
    }
    position = std::max(position, here);
    iterations_.push_back(point.iteration);
    positions_.push_back(position);
  }
  is_known_ = axis == PlotAxis::Iterations || position > 0;
}

double RunAxis::after(int64_t iteration) const {
  const auto behind = std::upper_bound(iterations_.begin(), iterations_.end(), iteration);
  return positions_[static_cast<size_t>(std::max<ptrdiff_t>(behind - iterations_.begin(), 1) - 1)];
}

double tokens_per_sample(const RunMetrics& metrics) {
  std::vector<double> found;
  for (const IterationPoint& point : metrics.iterations) {
    const double tokens =
        point.seconds * point.tokens_per_second / static_cast<double>(point.global_batch);
    if (std::isfinite(tokens) && tokens > 0) found.push_back(tokens);
  }
  if (found.empty()) return 0;
  const auto middle = found.begin() + static_cast<ptrdiff_t>(found.size() / 2);
  std::nth_element(found.begin(), middle, found.end());
  return std::max(1.0, std::round(*middle));
}

namespace {

std::string count(int64_t number, std::string_view thing) {
  return format("{} {}{}", with_commas(number), thing, number == 1 ? "" : "s");
}

std::string losses(const RunMetrics& metrics) {
  const IterationPoint *first = nullptr, *last = nullptr, *best = nullptr;
  int64_t others = 0;
  for (const IterationPoint& point : metrics.iterations) {
    if (!std::isfinite(point.loss)) {
      ++others;
      continue;
    }
    if (first == nullptr) first = &point;
    last = &point;
    if (best == nullptr || point.loss < best->loss) best = &point;
  }
  if (first == nullptr) return ", no finite loss";
  std::string text = format(", loss {:.4f} -> {:.4f} (best {:.4f} at {})", first->loss, last->loss,
                            best->loss, with_commas(best->iteration));
  if (others > 0) text += format(", {} without a finite loss", with_commas(others));
  return text;
}

std::string last_of(std::string_view name, const std::vector<EvaluationPoint>& points) {
  return points.empty() || !std::isfinite(points.back().loss)
             ? ""
             : format(", {} {:.4f}", name, points.back().loss);
}

}  // namespace

std::string summary_of(const RunMetrics& metrics) {
  const int64_t reached = metrics.iterations.back().iteration;
  const int64_t planned = metrics.starts.empty() ? 0 : metrics.starts.back().iterations;
  std::string text = planned > 0
                         ? format("{} of {}", with_commas(reached), count(planned, "iteration"))
                         : count(reached, "iteration");
  text +=
      losses(metrics) + last_of("validation", metrics.validations) + last_of("test", metrics.tests);
  const auto skipped = std::count_if(metrics.iterations.begin(), metrics.iterations.end(),
                                     [](const IterationPoint& point) { return !point.applied; });
  if (skipped > 0) text += format(", {} skipped", count(skipped, "update"));
  const RunAxis tokens(metrics, PlotAxis::Tokens);
  if (tokens.is_known())
    text += format(", {} tokens",
                   with_commas(static_cast<int64_t>(std::min(tokens.positions().back(), 9e18))));
  return text;
}

std::string short_summary_of(const RunMetrics& metrics) {
  const auto last =
      std::find_if(metrics.iterations.rbegin(), metrics.iterations.rend(),
                   [](const IterationPoint& point) { return std::isfinite(point.loss); });
  std::string text =
      last == metrics.iterations.rend() ? "no finite loss" : format("loss {:.4f}", last->loss);
  return text + last_of("validation", metrics.validations) + ", " +
         count(metrics.iterations.back().iteration, "iteration");
}

}  // namespace bev
