// The draws of dropout on the device: the same words of philox, compared with the same threshold,
// as on every other device.
#pragma once

#include "base/philox.h"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/dropout.h"

namespace bev::cuda {

struct DropoutDraws {
  explicit DropoutDraws(const ops::Dropout& d)
      : key(d.key),
        rows(reinterpret_cast<const int64_t*>(d.rows.data)),
        column_begin(static_cast<uint64_t>(d.column_begin)),
        threshold(static_cast<uint32_t>(ops::dropout_threshold(d.probability))),
        scale(static_cast<float>(1 / (1 - d.probability))),
        active(d.probability > 0) {}

  // Bit j: whether column + j of the local row is kept, for the columns of a group.
  __device__ __forceinline__ unsigned kept(int64_t row, int64_t column) const {
    const uint64_t logical_row = static_cast<uint64_t>(rows[row]);
    const uint64_t first = column_begin + static_cast<uint64_t>(column);
    const unsigned phase = static_cast<unsigned>(first % 4);
    unsigned bits = kept_of_block(logical_row, first / 4);
    bits |= kept_of_block(logical_row, first / 4 + 1) << 4;
    if (phase != 0) bits |= kept_of_block(logical_row, first / 4 + 2) << 8;
    return bits >> phase;
  }
  __device__ __forceinline__ bool keeps(int64_t row, int64_t column) const {
    const uint64_t first = column_begin + static_cast<uint64_t>(column);
    return kept_of_block(static_cast<uint64_t>(rows[row]), first / 4) >> (first % 4) & 1u;
  }

  uint64_t key;
  const int64_t* rows;
  uint64_t column_begin;
  uint32_t threshold;  // probability < 1, so that 32 bits hold it
  float scale;
  bool active;

 private:
  __device__ __forceinline__ unsigned kept_of_block(uint64_t logical_row, uint64_t block) const {
    const PhiloxBlock words = philox(key, logical_row, block);
    unsigned bits = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) bits |= (words[j] >= threshold ? 1u : 0u) << j;
    return bits;
  }
};

}  // namespace bev::cuda
