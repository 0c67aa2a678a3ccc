// What is done to a curve before it is drawn. Values that are not finite are gaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/plot/scale.h"

namespace bev {

// The mean of the finite values around each; the window is `width` values wide. Near the start,
// where curves are steep, it is narrower and still symmetric; at the end it has what is there. NaN
// where the value itself is not finite.
std::vector<double> smoothed(std::span<const double> values, int64_t width);

// Where nearly all values lie, wherever along the curve: what a few outliers add is left out. Empty
// (low > high) where no value is finite, or positive where only `positive` ones count.
Range typical_range(std::span<const double> values, bool positive = false);

struct Place {
  double x = 0, y = 0;
};

// The line through the places, for a drawing in which nothing finer than a column of width 1 is
// seen: at most two places of each column, its lowest and its highest, in their order. Places
// whose y is NaN are a gap, and stay one where no other is in their column. REQUIRES: finite x that
// do not descend.
std::vector<Place> thinned(std::span<const Place> places);

}  // namespace bev
