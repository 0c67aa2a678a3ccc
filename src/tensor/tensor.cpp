#include "tensor/tensor.h"

#include "base/check.h"
#include "base/integer.h"

namespace bev {

namespace {

template <class T>
T slice_view(const T& t, int dim, int64_t begin, int64_t count) {
  BEV_CHECK(
      dim >= 0 && dim < t.shape.rank() && begin >= 0 && count >= 0 && begin + count <= t.shape[dim],
      Internal, "slice [{}, {}) of dim {} of {}", begin, begin + count, dim, to_string(t.shape));
  T out = t;
  out.shape.set(dim, count);
  if (t.data != nullptr) {
    out.data += static_cast<size_t>(begin * t.stride[static_cast<size_t>(dim)]) * size_of(t.dtype);
  }
  return out;
}

template <class T>
T reshape_view(const T& t, const Shape& shape) {
  BEV_CHECK(is_contiguous(t), Internal, "reshape of a tensor with gaps");
  BEV_CHECK(t.shape.elements() == shape.elements(), Internal, "reshape {} to {}",
            to_string(t.shape), to_string(shape));
  return {t.data, t.dtype, shape, packed_strides(shape)};
}

template <class T>
T split_last_view(const T& t, int64_t b) {
  const int rank = t.shape.rank();
  BEV_CHECK(rank > 0 && rank < kMaxRank, Internal, "split_last of {}", to_string(t.shape));
  T out = t;
  out.shape = Shape{};
  Shape shape;
  switch (rank) {
    case 1: shape = {div_exact(t.shape[0], b), b}; break;
    case 2: shape = {t.shape[0], div_exact(t.shape[1], b), b}; break;
    case 3: shape = {t.shape[0], t.shape[1], div_exact(t.shape[2], b), b}; break;
    default: shape = {t.shape[0], t.shape[1], t.shape[2], div_exact(t.shape[3], b), b}; break;
  }
  out.shape = shape;
  out.stride[static_cast<size_t>(rank - 1)] = b;
  out.stride[static_cast<size_t>(rank)] = 1;
  return out;
}

}  // namespace

Strides packed_strides(const Shape& shape) {
  Strides stride{};
  int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    stride[static_cast<size_t>(dim)] = step;
    step *= shape[dim];
  }
  return stride;
}

Tensor tensor_over(std::byte* data, DType dtype, Shape shape) {
  return {data, dtype, shape, packed_strides(shape)};
}

ConstTensor tensor_over(const std::byte* data, DType dtype, Shape shape) {
  return {data, dtype, shape, packed_strides(shape)};
}

bool is_contiguous(const ConstTensor& t) {
  if (t.shape.elements() == 0) return true;
  int64_t step = 1;
  for (int dim = t.shape.rank() - 1; dim >= 0; --dim) {
    if (t.shape[dim] != 1 && t.stride[static_cast<size_t>(dim)] != step) return false;
    step *= t.shape[dim];
  }
  return true;
}

size_t bytes_of(const ConstTensor& t) {
  return static_cast<size_t>(t.shape.elements()) * size_of(t.dtype);
}

Tensor slice(const Tensor& t, int dim, int64_t begin, int64_t count) {
  return slice_view(t, dim, begin, count);
}
ConstTensor slice(const ConstTensor& t, int dim, int64_t begin, int64_t count) {
  return slice_view(t, dim, begin, count);
}
Tensor reshape(const Tensor& t, Shape shape) { return reshape_view(t, shape); }
ConstTensor reshape(const ConstTensor& t, Shape shape) { return reshape_view(t, shape); }
Tensor split_last(const Tensor& t, int64_t b) { return split_last_view(t, b); }
ConstTensor split_last(const ConstTensor& t, int64_t b) { return split_last_view(t, b); }

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
