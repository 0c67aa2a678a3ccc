#include "report/plot/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/format.h"

namespace bev {

namespace {

double mapped(double value, ScaleKind kind) {
  return kind == ScaleKind::Log ? std::log10(value) : value;
}

int exponent_of(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// The smallest of 1, 2, 5, 10, 20, ... (and what lies below 1) that is not below the value.
double round_step(double at_least) {
  const double power = std::pow(10.0, exponent_of(at_least));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= at_least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// 0.00025 -> "2.5e-4".
std::string scientific(double value) {
  int exponent = exponent_of(std::abs(value));
  double mantissa = value / std::pow(10.0, exponent);
  if (std::abs(mantissa) >= 9.995) {
    mantissa /= 10;
    ++exponent;
  }
  return format("{}e{}", without_trailing_zeros(format("{:.2f}", mantissa)), exponent);
}

// Labels of equally spaced values up to `largest` in size.
class Labels {
 public:
  Labels(double step, double largest) : largest_(largest) {
    for (const auto& [size, letter] :
         {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e3, "k")}) {
      // 10k needs a letter, 2000 does not; nor do numbers that differ in their last digits.
      if (largest < size * (size < 1e6 ? 10 : 1)) continue;
      if (decimals_of(step / size) <= 2) {
        unit_ = size;
        letter_ = letter;
      }
      break;
    }
    decimals_ = std::max(0, decimals_of(step / unit_));
  }

  std::string of(double value) const {
    if (value == 0) return "0";
    if (largest_ < 1e-2 || largest_ >= 1e15) return scientific(value);
    if (unit_ == 1 && decimals_ == 0 && largest_ >= 10000) return with_commas(std::llround(value));
    return format("{:.{}f}{}", value / unit_, decimals_, letter_);
  }

 private:
  static int decimals_of(double step) { return -exponent_of(step); }

  double largest_, unit_ = 1;
  std::string letter_;
  int decimals_ = 0;
};

std::vector<Tick> linear_ticks(Range values, int most) {
  const double step = round_step((values.high - values.low) / (most - 1));
  const Labels labels(step, std::max(std::abs(values.low), std::abs(values.high)));
  std::vector<Tick> ticks;
  const double first = std::ceil(values.low / step - 1e-9);
  for (int i = 0; i < most; ++i) {
    const double value = (first + i) * step;
    if (value > values.high + 1e-9 * step) break;
    ticks.push_back({value, labels.of(value)});
  }
  return ticks;
}

std::string label_alone(double value) {
  return value < 1e-2 || value >= 1e15 ? scientific(value)
                                       : without_trailing_zeros(Labels(value, value).of(value));
}

std::vector<Tick> log_ticks(Range values, int most) {
  const int lowest = exponent_of(values.low), highest = exponent_of(values.high);
  const auto collect = [&](std::initializer_list<double> factors, int stride) {
    std::vector<Tick> ticks;
    for (int e = lowest; e <= highest; e += stride) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10.0, e);
        if (value >= values.low * (1 - 1e-9) && value <= values.high * (1 + 1e-9))
          ticks.push_back({value, label_alone(value)});
      }
    }
    return ticks;
  };
  for (const auto& factors :
       {std::initializer_list<double>{1, 2, 5}, std::initializer_list<double>{1, 3}}) {
    const std::vector<Tick> ticks = collect(factors, 1);
    if (ticks.size() >= 3 && ticks.size() <= static_cast<size_t>(most)) return ticks;
  }
  // Within less than a decade the numbers of a linear scale are the round ones.
  if (values.high / values.low < 10) return linear_ticks(values, most);
  return collect({1}, 1 + (highest - lowest) / most);
}

}  // namespace

Scale::Scale(Range values, double begin, double end, ScaleKind kind)
    : values_(values),
      begin_(begin),
      end_(end),
      kind_(kind),
      mapped_{mapped(values.low, kind), mapped(values.high, kind)} {
  BEV_CHECK(std::isfinite(mapped_.low) && std::isfinite(mapped_.high) && values.low < values.high,
            Internal, "a scale from {} to {}", values.low, values.high);
}

double Scale::place(double value) const {
  const double at = (mapped(value, kind_) - mapped_.low) / (mapped_.high - mapped_.low);
  return std::isfinite(at) ? begin_ + at * (end_ - begin_)
                           : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Tick> ticks_within(Range values, ScaleKind kind, int most) {
  return kind == ScaleKind::Log ? log_ticks(values, most) : linear_ticks(values, most);
}

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
