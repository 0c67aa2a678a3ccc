#include "report/plot/run_axis.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace bev {

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

}  // namespace bev
