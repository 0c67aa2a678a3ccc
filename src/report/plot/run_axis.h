// Where the iterations of a run stand on the horizontal axis.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "report/metrics_reader.h"

namespace bev {

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

}  // namespace bev
