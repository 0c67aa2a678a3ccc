#include "tensor/shape.h"

#include "base/check.h"

namespace bev {

Shape::Shape(std::initializer_list<int64_t> extents) {
  BEV_CHECK(extents.size() <= kMaxRank, Internal, "a shape has at most {} dims", kMaxRank);
  for (const int64_t extent : extents) {
    BEV_CHECK(extent >= 0, Internal, "negative extent {}", extent);
    extents_[static_cast<size_t>(rank_++)] = extent;
  }
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int dim = 0; dim < rank_; ++dim) product *= (*this)[dim];
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(shape[dim]);
  }
  return text + "]";
}

}  // namespace bev
