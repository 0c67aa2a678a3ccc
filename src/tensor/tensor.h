// Tensors are views: they own nothing. Two structs rather than one, so that a signature shows what
// is read and what is written, and the compiler keeps it true.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/dtype.h"

namespace bev {

// Extents of up to five dimensions, held inline.

constexpr int kMaxRank = 5;

class Shape {
 public:
  Shape() = default;
  // REQUIRES: at most kMaxRank extents, none negative.
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return extents_[static_cast<size_t>(dim)]; }
  void set(int dim, int64_t extent) { extents_[static_cast<size_t>(dim)] = extent; }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// "[2, 64, 768]".
std::string to_string(const Shape& shape);

using Strides = std::array<int64_t, kMaxRank>;  // in elements

Strides packed_strides(const Shape& shape);

// What an op reads. The last dimension is always contiguous. A tensor of rank 0 is "absent".
struct ConstTensor {
  const std::byte* data = nullptr;  // null on the null device
  DType dtype = DType::f32;
  Shape shape{};
  Strides stride{};

  bool present() const { return shape.rank() > 0; }
  int64_t rows() const { return shape[0]; }
};

// What an op writes. Converts to ConstTensor, never back.
struct Tensor {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape{};
  Strides stride{};

  bool present() const { return shape.rank() > 0; }
  int64_t rows() const { return shape[0]; }
  operator ConstTensor() const {  // NOLINT(google-explicit-constructor): reading is always allowed
    return {data, dtype, shape, stride};
  }
};

// A contiguous tensor over memory that holds at least shape.elements() elements.
Tensor tensor_over(std::byte* data, DType dtype, Shape shape);
ConstTensor tensor_over(const std::byte* data, DType dtype, Shape shape);

bool is_contiguous(const ConstTensor& t);
size_t bytes_of(const ConstTensor& t);  // of its elements, gaps not counted

// The sub-tensor [begin, begin + count) along dim. REQUIRES: inside the extent.
Tensor slice(const Tensor& t, int dim, int64_t begin, int64_t count);
ConstTensor slice(const ConstTensor& t, int dim, int64_t begin, int64_t count);

// The same elements with another shape. REQUIRES: contiguous, equal element counts.
Tensor reshape(const Tensor& t, Shape shape);
ConstTensor reshape(const ConstTensor& t, Shape shape);

// [..., a * b] seen as [..., a, b]; the leading strides stay, so a slice of a fused row can be
// split. REQUIRES: the last extent is a multiple of b.
Tensor split_last(const Tensor& t, int64_t b);
ConstTensor split_last(const ConstTensor& t, int64_t b);

}  // namespace bev
