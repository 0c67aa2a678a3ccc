// How the ops of the cpu backend spread over the threads of their device.
#pragma once

#include <algorithm>

#include "device/exec.h"
#include "device/thread_pool.h"
#include "tensor/tensor.h"

namespace bev::cpu {

inline HostDevice& host_of(Exec& ex) { return static_cast<HostDevice&>(ex.device); }
inline ThreadPool& threads_of(Exec& ex) { return host_of(ex).threads(); }

// Elements below which waking another thread costs more than it saves.
constexpr int64_t kGrain = 16384;

inline int64_t grain_rows(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

// Calls body(row, begin, end) on pieces that together cover [rows, width]. For element-wise work
// only: the cut depends on the number of threads.
template <class Body>
void each_piece(Exec& ex, int64_t rows, int64_t width, const Body& body) {
  threads_of(ex).split(rows * width, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / width, column = begin % width;
      const int64_t count = std::min(width - column, end - begin);
      body(row, column, column + count);
      begin += count;
    }
  });
}

// A tensor as a list of rows: all dims but the last, counted in order.

template <class T>
class RowsOf {
 public:
  // Tensor for a T that is written, ConstTensor for a const one.
  template <class Source>
  explicit RowsOf(const Source& t)
      : data_(reinterpret_cast<T*>(t.data)), shape_(t.shape), stride_(t.stride) {
    const int last = shape_.rank() - 1;
    for (int dim = 0; dim < last; ++dim) count_ *= shape_[dim];
    if (last > 0) step_ = stride(last - 1);
    for (int dim = last - 1; dim > 0; --dim) {
      is_even_ = is_even_ && stride(dim - 1) == stride(dim) * shape_[dim];
    }
  }

  int64_t count() const { return count_; }

  T* operator[](int64_t row) const {
    if (is_even_) return data_ + row * step_;
    int64_t offset = 0;
    for (int dim = shape_.rank() - 2; dim >= 0; --dim) {
      offset += row % shape_[dim] * stride(dim);
      row /= shape_[dim];
    }
    return data_ + offset;
  }

 private:
  int64_t stride(int dim) const { return stride_[static_cast<size_t>(dim)]; }

  T* data_;
  Shape shape_;
  Strides stride_;
  int64_t count_ = 1;
  int64_t step_ = 0;
  bool is_even_ = true;  // one step leads from every row to the next
};

inline int64_t width_of(const ConstTensor& t) { return t.shape[t.shape.rank() - 1]; }

}  // namespace bev::cpu
