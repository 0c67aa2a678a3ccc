// The keys of plans: the numbers that a choice depends on, hashed together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bev::cuda {

template <size_t N>
using Facts = std::array<int64_t, N>;

struct FactsHash {
  template <size_t N>
  size_t operator()(const Facts<N>& facts) const {
    uint64_t hash = 0;
    for (const int64_t fact : facts) {
      hash = (hash ^ static_cast<uint64_t>(fact)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

}  // namespace bev::cuda
