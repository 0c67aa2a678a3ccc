// A run in a line of words.
#pragma once

#include <cstdint>
#include <string>

#include "report/metrics_reader.h"

namespace bev {

// "3,000 of 3,000 iterations, loss 7.1049 -> 2.7371 (best 2.6912 at 2,871), validation 2.7647,
// 2 updates skipped, 3,072,000 tokens". REQUIRES: there are iterations.
std::string summary_of(const RunMetrics& metrics);

// The same for the legend of a figure: "loss 2.7371, validation 2.7647, 3,000 iterations".
std::string short_summary_of(const RunMetrics& metrics);

}  // namespace bev
