// Element access for loops that define an op: strides respected, nothing clever.
#pragma once

#include "base/check.h"
#include "config/choices.h"
#include "ops/elementwise.h"
#include "tensor/tensor.h"

namespace bev::reference {

// The element of type T at (i, j, ...), one index per dim.
template <class T, class... Index>
T& element(const Tensor& t, Index... index) {
  int64_t offset = 0;
  size_t dim = 0;
  ((offset += index * t.stride[dim++]), ...);
  return reinterpret_cast<T*>(t.data)[offset];
}

template <class T, class... Index>
const T& element(const ConstTensor& t, Index... index) {
  int64_t offset = 0;
  size_t dim = 0;
  ((offset += index * t.stride[dim++]), ...);
  return reinterpret_cast<const T*>(t.data)[offset];
}

// The same for double, the type of nearly every operand.
template <class... Index>
double& at(const Tensor& t, Index... index) {
  return element<double>(t, index...);
}

template <class... Index>
double at(const ConstTensor& t, Index... index) {
  return element<double>(t, index...);
}

inline int64_t row_count(const Shape& shape) {
  int64_t rows = 1;
  for (int dim = 0; dim + 1 < shape.rank(); ++dim) rows *= shape[dim];
  return rows;
}

inline int64_t width_of(const Shape& shape) { return shape[shape.rank() - 1]; }

// Row r of all dims but the last, counted in order, as a tensor of one dim.
template <class T>
T row(const T& t, int64_t r) {
  const int last = t.shape.rank() - 1;
  int64_t offset = 0;
  for (int dim = last - 1; dim >= 0; --dim) {
    offset += r % t.shape[dim] * t.stride[static_cast<size_t>(dim)];
    r /= t.shape[dim];
  }
  const auto bytes = offset * static_cast<int64_t>(size_of(t.dtype));
  return {t.data + bytes, t.dtype, Shape{t.shape[last]}, Strides{1}};
}

// The reference device computes in f64 only.
inline void require_f64(const char* op, DType dtype) {
  BEV_CHECK(dtype == DType::f64, Usage, "{}: the reference device has f64, not {}", op,
            name_of(dtype));
}

// The formulas of one element that several ops share.

// The activation applied to the argument or, for a gated one, to the gate.
double activation_value(Activation activation, double x);
double activation_slope(Activation activation, double x);

// What dropout multiplies element (row, column) of the local tensor by: 0 or 1 / (1 - probability).
double dropout_factor(const ops::Dropout& dropout, int64_t row, int64_t column);

}  // namespace bev::reference
