#include "report/plot/scale.h"

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

}  // namespace bev
