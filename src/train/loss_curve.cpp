#include "train/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/format.h"

namespace bev {

namespace {

constexpr size_t kRows = 8, kScaleColumns = 9;

// The mean of the finite values of each column; NaN where there are none.
std::vector<double> column_means(std::span<const double> values, size_t columns) {
  std::vector<double> means(columns, std::nan(""));
  for (size_t c = 0; c < columns; ++c) {
    const size_t begin = c * values.size() / columns;
    const size_t end = std::max(begin + 1, (c + 1) * values.size() / columns);
    double sum = 0, count = 0;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) continue;
      sum += values[i];
      ++count;
    }
    if (count > 0) means[c] = sum / count;
  }
  return means;
}

}  // namespace

std::string loss_curve(std::span<const double> values, size_t columns) {
  const auto finite =
      std::count_if(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  if (finite < 10 || columns < 30) return {};
  const std::vector<double> means =
      column_means(values, std::min(columns - kScaleColumns, values.size()));
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double mean : means) {
    if (std::isnan(mean)) continue;
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  const double step = (high - low) / static_cast<double>(kRows - 1);
  std::vector<std::string> rows(kRows, std::string(means.size(), ' '));
  for (size_t c = 0; c < means.size(); ++c) {
    if (std::isnan(means[c])) continue;
    const auto row = step > 0 ? static_cast<size_t>(std::lround((high - means[c]) / step)) : 0;
    rows[std::min(row, kRows - 1)][c] = '*';
  }
  std::string text;
  for (size_t row = 0; row < kRows; ++row) {
    const size_t last = rows[row].find_last_not_of(' ');
    rows[row].resize(last == std::string::npos ? 0 : last + 1);
    text += format("{:>7.3f} |{}\n", high - step * static_cast<double>(row), rows[row]);
  }
  return text;
}

}  // namespace bev
