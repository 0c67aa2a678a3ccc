// The rows that the backward of a norm will need next, on their way into shared memory. A thread
// copies the groups of columns that it alone will use into places of its own: nobody waits for the
// copies of another.
#pragma once

#include "ops/cuda/primitives/cp_async.cuh"

namespace bev::cuda {

// Rows of a thread on their way while one is computed. In bf16 that is 74 to 111 KB for each
// multiprocessor; bandwidth times latency of an H200 is about 25 KB, but memory does not answer
// evenly.
constexpr int kRowsAhead = 2;

// For a thread that has kGroups groups of a row in each of its operands.
template <class T, int kGroups>
class RowRing {
 public:
  enum Operand : uint8_t { Dy, X, Residual };

  static constexpr size_t kThreadBytes = (kRowsAhead + 1) * 3 * kGroups * sizeof(Group<T>);

  // `memory` has kThreadBytes for every thread of the block.
  __device__ __forceinline__ explicit RowRing(unsigned char* memory)
      : mine_(reinterpret_cast<Group<T>*>(memory) + threadIdx.x / 32 * kPlaces * kPlace +
              threadIdx.x % 32) {}

  // What is never copied has to be set once, in all places.
  __device__ __forceinline__ void set_everywhere(Operand operand, int g, const Group<T>& value) {
#pragma unroll
    for (int place = 0; place < kPlaces; ++place) {
      mine_[place * kPlace + offset(operand, g)] = value;
    }
  }

  // The row that is computed now.
  __device__ __forceinline__ const Group<T>& operator()(Operand operand, int g) const {
    return mine_[now_ * kPlace + offset(operand, g)];
  }
  // The one that comes `rows` later, up to kRowsAhead, or the place it will have.
  __device__ __forceinline__ Group<T>& later(int rows, Operand operand, int g) {
    const int place = now_ + rows;
    return mine_[(place < kPlaces ? place : place - kPlaces) * kPlace + offset(operand, g)];
  }
  __device__ __forceinline__ void advance() { now_ = now_ + 1 < kPlaces ? now_ + 1 : 0; }

 private:
  static constexpr int kPlaces = kRowsAhead + 1;
  static constexpr int kPlace = 3 * kGroups * 32;  // from place to place of a warp
  __device__ __forceinline__ static constexpr int offset(Operand operand, int g) {
    return (operand * kGroups + g) * 32;
  }

  Group<T>* mine_;
  int now_ = 0;
};

}  // namespace bev::cuda
