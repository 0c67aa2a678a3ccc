#include "report/plot/line.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bev {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_there(const Place& place) { return std::isfinite(place.y); }

// The places of one column that are drawn.
void append_column(std::span<const Place> column, std::vector<Place>& out) {
  const Place *lowest = nullptr, *highest = nullptr, *last = nullptr;
  for (const Place& place : column) {
    if (!is_there(place)) continue;
    if (lowest == nullptr || place.y < lowest->y) lowest = &place;
    if (highest == nullptr || place.y > highest->y) highest = &place;
    last = &place;
  }
  // What differs by less than a part of a pixel is one.
  if (highest->y - lowest->y < 0.3) {
    out.push_back(*last);
    return;
  }
  out.push_back(*std::min(lowest, highest));
  out.push_back(*std::max(lowest, highest));
}

}  // namespace

std::vector<double> smoothed(std::span<const double> values, int64_t width) {
  std::vector<double> sums{0};
  std::vector<int64_t> counts{0};
  for (const double value : values) {
    const bool is_finite = std::isfinite(value);
    sums.push_back(sums.back() + (is_finite ? value : 0));
    counts.push_back(counts.back() + (is_finite ? 1 : 0));
  }
  const auto size = static_cast<int64_t>(values.size());
  std::vector<double> means(values.size(), kNaN);
  for (int64_t i = 0; i < size; ++i) {
    if (!std::isfinite(values[static_cast<size_t>(i)])) continue;
    const int64_t reach = std::min((width - 1) / 2, i);
    const auto begin = static_cast<size_t>(i - reach);
    const auto end = static_cast<size_t>(std::min(i + reach + 1, size));
    const double mean =
        (sums[end] - sums[begin]) / static_cast<double>(counts[end] - counts[begin]);
    means[static_cast<size_t>(i)] = std::isfinite(mean) ? mean : values[static_cast<size_t>(i)];
  }
  return means;
}

Range typical_range(std::span<const double> values, bool positive) {
  std::vector<double> usable;
  for (const double value : values)
    if (std::isfinite(value) && (!positive || value > 0)) usable.push_back(value);
  // Of a group two values at least, and a twentieth of many, may be outliers on either side; a
  // short curve shows everything.
  const size_t in_group = usable.size() < 40 ? 1 : std::max<size_t>(5, usable.size() / 100);
  Range range{.low = HUGE_VAL, .high = -HUGE_VAL};
  for (size_t begin = 0; begin < usable.size(); begin += in_group) {
    const std::span<double> group =
        std::span(usable).subspan(begin, std::min(in_group, usable.size() - begin));
    std::sort(group.begin(), group.end());
    const size_t left_out =
        std::min(std::max<size_t>(2, group.size() / 20), (group.size() - 1) / 2);
    range.low = std::min(range.low, group[left_out]);
    range.high = std::max(range.high, group[group.size() - 1 - left_out]);
  }
  return range;
}

std::vector<Place> thinned(std::span<const Place> places) {
  std::vector<Place> out;
  size_t begin = 0;
  while (begin < places.size()) {
    if (!is_there(places[begin])) {
      if (!out.empty() && is_there(out.back())) out.push_back({kNaN, kNaN});
      ++begin;
      continue;
    }
    const double column = std::floor(places[begin].x);
    size_t end = begin + 1;
    while (end < places.size() && places[end].x < column + 1) ++end;
    append_column(places.subspan(begin, end - begin), out);
    begin = end;
  }
  return out;
}

}  // namespace bev
