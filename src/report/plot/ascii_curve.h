// Curves drawn with letters.
#pragma once

#include <span>
#include <string>

namespace bev {

// The values from left to right, averaged over what shares a column, with the scale at the left.
// Empty for fewer than ten finite values or fewer than 30 columns. Lines end with '\n'.
std::string loss_curve(std::span<const double> values, size_t columns);

// Places from left to right and a value at each. REQUIRES: x are finite and as many as y.
struct LetterCurve {
  char letter = '*';
  std::span<const double> x{}, y{};
};

// Several on the same scales; where they meet, the later covers the earlier.
std::string loss_curves(std::span<const LetterCurve> curves, size_t columns);

}  // namespace bev
