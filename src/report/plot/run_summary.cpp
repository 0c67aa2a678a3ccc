#include "report/plot/run_summary.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/plot/run_axis.h"

namespace bev {

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
