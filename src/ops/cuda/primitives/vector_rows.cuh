// How the memory-bound kernels reach their operands: a tensor as a list of rows, a row as groups of
// eight adjacent columns. A group is one 16-byte access in bf16 and f16 and two in f32 where the
// rows are aligned ("wide"), and element by element where they are not.
#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/cuda/primitives/element_types.cuh"
#include "tensor/tensor.h"

namespace bev::cuda {

constexpr int kGroup = 8;
constexpr int kWideBytes = 16;

// Eight elements. The short types stay packed in pairs, which takes half the registers.
template <class T>
class alignas(kWideBytes) Group {
 public:
  __device__ __forceinline__ T element(int j) const {
    if constexpr (kShort) {
      T value;
      const auto bits = static_cast<uint16_t>(word_[j / 2] >> (j % 2 * 16));
      memcpy(&value, &bits, sizeof value);
      return value;
    } else {
      return word_[j];
    }
  }
  __device__ __forceinline__ void put(int j, T value) {
    if constexpr (kShort) {
      uint16_t bits;
      memcpy(&bits, &value, sizeof value);
      const uint32_t kept = word_[j / 2] & (j % 2 == 0 ? 0xFFFF0000u : 0x0000FFFFu);
      word_[j / 2] = kept | static_cast<uint32_t>(bits) << (j % 2 * 16);
    } else {
      word_[j] = value;
    }
  }
  __device__ __forceinline__ float operator[](int j) const {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {  // the upper half of a float: one instruction
      const uint32_t word = word_[j / 2];
      return __uint_as_float(j % 2 == 0 ? word << 16 : word & 0xFFFF0000u);
    } else {
      return to_float(element(j));
    }
  }
  __device__ __forceinline__ static Group of(const float (&values)[kGroup]) {
    Group group;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if constexpr (kShort) {
        if (j % 2 == 0) group.word_[j / 2] = pair(values[j], values[j + 1]);
      } else {
        group.word_[j] = values[j];
      }
    }
    return group;
  }

 private:
  static constexpr bool kShort = sizeof(T) == 2;
  using Storage = std::conditional_t<kShort, uint32_t, T>;
  Storage word_[kShort ? kGroup / 2 : kGroup] = {};

  __device__ __forceinline__ static uint32_t pair(float low, float high) {
    uint32_t word;
    if constexpr (std::is_same_v<T, __half>) {
      const __half2 both = __floats2half2_rn(low, high);
      memcpy(&word, &both, sizeof word);
    } else {
      const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
      memcpy(&word, &both, sizeof word);
    }
    return word;
  }
};
static_assert(sizeof(Group<__half>) == 16 && sizeof(Group<float>) == 32);

inline int64_t width_of(const ConstTensor& t) { return t.shape[t.shape.rank() - 1]; }
inline int64_t rows_of(const ConstTensor& t) {
  int64_t rows = 1;
  for (int dim = 0; dim + 1 < t.shape.rank(); ++dim) rows *= t.shape[dim];
  return rows;
}

// Whether every row begins at a multiple of `bytes`. An absent tensor is no obstacle.
inline bool is_aligned(const ConstTensor& t, int64_t bytes) {
  if (!t.present()) return true;
  bool aligned = reinterpret_cast<uintptr_t>(t.data) % static_cast<uintptr_t>(bytes) == 0;
  const auto size = static_cast<int64_t>(size_of(t.dtype));
  for (int dim = 0; dim + 1 < t.shape.rank(); ++dim) {
    const bool steps = t.shape[dim] > 1;
    aligned = aligned && (!steps || t.stride[static_cast<size_t>(dim)] * size % bytes == 0);
  }
  return aligned;
}
template <class... Tensors>
bool are_wide(const Tensors&... tensors) {
  return (is_aligned(tensors, kWideBytes) && ...);
}

// The rows of a tensor: all dims but the last, counted in order. Dims that one step leads through
// are one dim here.
template <class T>
class Rows {
 public:
  Rows() = default;
  // Tensor for a T that is written, ConstTensor for a const one.
  template <class Source>
  explicit Rows(const Source& t) : data_(reinterpret_cast<T*>(t.data)) {
    for (int dim = 0; dim + 1 < t.shape.rank(); ++dim) {
      const int64_t extent = t.shape[dim], stride = t.stride[static_cast<size_t>(dim)];
      if (extent == 1) continue;
      if (dims_ > 0 && stride_[dims_ - 1] == extent * stride) {
        extent_[dims_ - 1] *= extent;
        stride_[dims_ - 1] = stride;
      } else {
        extent_[dims_] = extent;
        stride_[dims_++] = stride;
      }
    }
  }

  __device__ __forceinline__ T* operator[](int64_t row) const {
    int64_t offset = 0;
    if (dims_ > 1) {
#pragma unroll
      for (int dim = kMaxRank - 2; dim > 0; --dim) {
        if (dim >= dims_) continue;
        const int64_t above = row / extent_[dim];
        offset += (row - above * extent_[dim]) * stride_[dim];
        row = above;
      }
    }
    return data_ + offset + row * stride_[0];
  }

 private:
  T* data_ = nullptr;
  int dims_ = 0;
  int64_t extent_[kMaxRank - 1] = {};
  int64_t stride_[kMaxRank - 1] = {};
};

// A whole group at an aligned address.
template <class T>
__device__ __forceinline__ Group<T> load_wide(const T* from) {
  return *reinterpret_cast<const Group<T>*>(from);
}

// Columns [column, column + kGroup) of a row; those at or beyond width are 0.
template <class T>
__device__ __forceinline__ Group<T> load_group(const T* row, int64_t column, int64_t width,
                                               bool wide) {
  if (wide && column + kGroup <= width) return load_wide(row + column);
  Group<T> group;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (column + j < width) group.put(j, row[column + j]);
  }
  return group;
}

// The same, written. As assembly: the compiler would merge an assignment with the stores of single
// elements beside it.
template <class T>
__device__ __forceinline__ void store_wide(const Group<T>& group, T* to) {
  uint32_t words[sizeof group / 4];
  memcpy(words, &group, sizeof group);
  const size_t address = __cvta_generic_to_global(to);
#pragma unroll
  for (size_t w = 0; w < sizeof group / 4; w += 4) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address + 4 * w), "r"(words[w]),
                 "r"(words[w + 1]), "r"(words[w + 2]), "r"(words[w + 3])
                 : "memory");
  }
}

template <class T>
__device__ __forceinline__ void store_group(const Group<T>& group, T* row, int64_t column,
                                            int64_t width, bool wide) {
  if (wide && column + kGroup <= width) {
    store_wide(group, row + column);
    return;
  }
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if (column + j < width) row[column + j] = group.element(j);
  }
}

// Blocks for a kernel that strides over `items`, one per thread at a time: enough to fill the GPU,
// no more than there is work.
inline unsigned blocks_for(Exec& ex, int64_t items, int threads) {
  const int64_t resident = int64_t{gpu_of(ex).multiprocessors()} * (2048 / threads);
  return static_cast<unsigned>(std::clamp(ceil_div(items, threads), int64_t{1}, 4 * resident));
}

// Calls body(row, column) for every group of a [rows, width] operand, in the threads of a grid.
template <class Body>
__device__ __forceinline__ void each_group(int64_t rows, int64_t width, Body body) {
  const int64_t groups = ceil_div(width, kGroup);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * groups; i += step) {
    const int64_t row = i / groups;
    body(row, (i - row * groups) * kGroup);
  }
}

}  // namespace bev::cuda
