// From values to places on paper, and the round numbers that stand beside an axis.
#pragma once

#include <string>
#include <vector>

namespace bev {

struct Range {
  double low = 0, high = 1;

  bool operator==(const Range&) const = default;
};

enum class ScaleKind : uint8_t { Linear, Log };

class Scale {
 public:
  // `begin` and `end` are the places of the lowest and the highest value. REQUIRES: finite values,
  // low < high, and 0 < low where the scale is logarithmic.
  Scale(Range values, double begin, double end, ScaleKind kind = ScaleKind::Linear);

  // NaN for a value that has no place: one that is not finite, or not positive on a logarithmic
  // scale.
  double place(double value) const;
  Range values() const { return values_; }

 private:
  Range values_;
  double begin_, end_;
  ScaleKind kind_;
  Range mapped_;
};

struct Tick {
  double value = 0;
  std::string label{};
};

// Round numbers within the range, at most `most` of them, all labels with the same number of
// decimals where that says it best: 0.5 1.0 1.5, 20k 40k, 1e-4 2e-4. REQUIRES as for Scale;
// most >= 2.
std::vector<Tick> ticks_within(Range values, ScaleKind kind, int most);

}  // namespace bev
