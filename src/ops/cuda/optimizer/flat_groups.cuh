// How optimizers reach flat memory: groups of four elements, one 16-byte access of f32 if they
// are whole and aligned ("wide"). Nothing is used twice, so that wide accesses are marked as the
// first to leave the caches.
#pragma once

#include <type_traits>

#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda::flat {

constexpr int kThreads = 256;
constexpr int kGroup = 4;                 // elements of a thread: one 16-byte access of f32
constexpr int kTurn = kThreads * kGroup;  // elements of a block at once

template <class T>
struct alignas(sizeof(T) * kGroup) FlatGroup {
  T at[kGroup];
};
template <class T>
using Word = std::conditional_t<sizeof(T) == 4, uint4, uint2>;  // of a group

template <bool kWide, class T>
__device__ void load(const T* from, int64_t begin, int count, float* to) {
  FlatGroup<T> group{};
  if constexpr (kWide) {
    const Word<T> word = __ldcs(reinterpret_cast<const Word<T>*>(from + begin));
    memcpy(&group, &word, sizeof group);
  } else {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      if (e < count) group.at[e] = from[begin + e];
    }
  }
#pragma unroll
  for (int e = 0; e < kGroup; ++e) to[e] = to_float(group.at[e]);
}

template <bool kWide, class T>
__device__ void store(const float* from, T* to, int64_t begin, int count) {
  FlatGroup<T> group;
#pragma unroll
  for (int e = 0; e < kGroup; ++e) group.at[e] = from_float<T>(from[e]);
  if constexpr (kWide) {
    Word<T> word;
    memcpy(&word, &group, sizeof word);
    __stcs(reinterpret_cast<Word<T>*>(to + begin), word);
  } else {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      if (e < count) to[begin + e] = group.at[e];
    }
  }
}

// Whether this tensor is made of whole, aligned groups; an absent one is.
inline bool allows_groups(const ConstTensor& t) {
  if (!t.present()) return true;
  return t.shape[0] % kGroup == 0 &&
         reinterpret_cast<uintptr_t>(t.data) % (kGroup * size_of(t.dtype)) == 0;
}

}  // namespace bev::cuda::flat
