// The figure of one or several runs: loss, learning rate, gradient norm, speed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/metrics_reader.h"
#include "report/plot/figure.h"

namespace bev {

// Where the iterations of a run stand on the horizontal axis.

enum class PlotAxis : uint8_t { Iterations, Samples, Tokens, Hours };

std::string_view label_of(PlotAxis axis);

class RunAxis {
 public:
  RunAxis(const RunMetrics& metrics, PlotAxis axis);

  // Whether the metrics say anything about this axis; an older version may not have written it.
  bool is_known() const { return is_known_; }
  // Of each point of RunMetrics::iterations: finite, never descending.
  const std::vector<double>& positions() const { return positions_; }
  // After this iteration, or after the last one before it that the metrics have. REQUIRES: there
  // are iterations.
  double after(int64_t iteration) const;

 private:
  std::vector<int64_t> iterations_;
  std::vector<double> positions_;
  bool is_known_ = false;
};

// 0 where the metrics do not say it.
double tokens_per_sample(const RunMetrics& metrics);

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

// A run in a line of words.

// "3,000 of 3,000 iterations, loss 7.1049 -> 2.7371 (best 2.6912 at 2,871), validation 2.7647,
// 2 updates skipped, 3,072,000 tokens". REQUIRES: there are iterations.
std::string summary_of(const RunMetrics& metrics);

// The same for the legend of a figure: "loss 2.7371, validation 2.7647, 3,000 iterations".
std::string short_summary_of(const RunMetrics& metrics);

}  // namespace bev
