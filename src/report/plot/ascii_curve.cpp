#include "report/plot/ascii_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace bev {

namespace {

constexpr size_t kRows = 8, kScaleColumns = 9;

struct Span {
  double low = HUGE_VAL, high = -HUGE_VAL;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// The mean of the finite values of each column; NaN where there are none.
std::vector<double> column_means(const LetterCurve& curve, const Span& x, size_t columns) {
  std::vector<double> sums(columns, 0), counts(columns, 0);
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    const double at = x.high > x.low ? (curve.x[i] - x.low) / (x.high - x.low) : 0;
    const size_t column =
        std::min(columns - 1, static_cast<size_t>(at * static_cast<double>(columns)));
    sums[column] += curve.y[i];
    ++counts[column];
  }
  // 0 / 0 is not a number.
  for (size_t c = 0; c < columns; ++c) sums[c] /= counts[c];
  return sums;
}

}  // namespace

std::string loss_curve(std::span<const double> values, size_t columns) {
  std::vector<double> x(values.size());
  std::iota(x.begin(), x.end(), 0.0);
  const LetterCurve curve{.x = x, .y = values};
  return loss_curves({&curve, 1}, columns);
}

std::string loss_curves(std::span<const LetterCurve> curves, size_t columns) {
  size_t finite = 0, longest = 0;
  Span x;
  for (const LetterCurve& curve : curves) {
    for (const double at : curve.x) x.include(at);
    finite += static_cast<size_t>(
        std::count_if(curve.y.begin(), curve.y.end(), [](double v) { return std::isfinite(v); }));
    longest = std::max(longest, curve.x.size());
  }
  if (finite < 10 || columns < 30) return {};
  const size_t width = std::min(columns - kScaleColumns, longest);
  std::vector<std::vector<double>> means;
  Span y;
  for (const LetterCurve& curve : curves) {
    means.push_back(column_means(curve, x, width));
    for (const double mean : means.back())
      if (!std::isnan(mean)) y.include(mean);
  }
  const double step = (y.high - y.low) / static_cast<double>(kRows - 1);
  std::vector<std::string> rows(kRows, std::string(width, ' '));
  for (size_t curve = 0; curve < curves.size(); ++curve) {
    for (size_t c = 0; c < width; ++c) {
      const double mean = means[curve][c];
      if (std::isnan(mean)) continue;
      const auto row = step > 0 ? static_cast<size_t>(std::lround((y.high - mean) / step)) : 0;
      rows[std::min(row, kRows - 1)][c] = curves[curve].letter;
    }
  }
  std::string text;
  for (size_t row = 0; row < kRows; ++row) {
    const size_t last = rows[row].find_last_not_of(' ');
    rows[row].resize(last == std::string::npos ? 0 : last + 1);
    text += format("{:>7.3f} |{}\n", y.high - step * static_cast<double>(row), rows[row]);
  }
  return text;
}

}  // namespace bev
