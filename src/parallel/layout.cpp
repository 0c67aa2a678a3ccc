#include "parallel/layout.h"

namespace bev {

int Grid::world() const {
  int product = 1;
  for (const auto& [axis, extent] : axes_) product *= extent;
  return product;
}

int Grid::size(Axis axis) const {
  for (const auto& [candidate, extent] : axes_) {
    if (candidate == axis) return extent;
  }
  return 1;
}

int Grid::coordinate(int rank, Axis axis) const {
  for (const auto& [candidate, extent] : axes_) {
    if (candidate == axis) return rank % extent;
    rank /= extent;
  }
  return 0;
}

std::vector<int> Grid::peers(int rank, const AxisSet& over) const {
  std::vector<int> found;
  for (int other = 0; other < world(); ++other) {
    bool same = true;
    for (const auto& [axis, extent] : axes_) {
      same = same && (over.contains(axis) || coordinate(other, axis) == coordinate(rank, axis));
    }
    if (same) found.push_back(other);
  }
  return found;
}

}  // namespace bev
