// The figure of one or several runs: loss, learning rate, gradient norm, speed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "report/plot/figure.h"
#include "report/plot/run_axis.h"

namespace bev {

// Of the panel that shows it.
inline constexpr std::string_view kLossTitle = "loss";

struct PlottedRun {
  std::string name{};
  RunMetrics metrics{};  // with an iteration between PlotOptions::from and ::to
};

struct PlotOptions {
  PlotAxis axis = PlotAxis::Iterations;
  int64_t smooth = 0;  // iterations in a mean; 0: as many as suit the length
  int64_t from = 0, to = std::numeric_limits<int64_t>::max();  // iterations
  bool log = false;                                            // the scale of the loss
  bool difference = false;  // a panel with the loss of each run minus that of the first
};

// The number of iterations in a mean: the one that was asked for, or one that suits the longest
// run.
int64_t mean_width(std::span<const PlottedRun> runs, const PlotOptions& options);

// A panel for which no run has a number is left out. REQUIRES: there are runs, and their axis is
// known.
Figure figure_of(std::span<const PlottedRun> runs, const PlotOptions& options);

}  // namespace bev
