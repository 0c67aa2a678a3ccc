// A curve drawn with letters.
#pragma once

#include <span>
#include <string>

namespace bev {

// The values from left to right, averaged over what shares a column, with the scale at the left.
// Empty for fewer than ten finite values or fewer than 30 columns. Lines end with '\n'.
std::string loss_curve(std::span<const double> values, size_t columns);

}  // namespace bev
