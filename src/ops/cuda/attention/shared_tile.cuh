// Rows of a head in shared memory, as the tensor cores read them. Elements are 16 bits wide. The
// 16-byte chunks of a row lie permuted by the row, so that eight rows of one column fall into
// different banks.
#pragma once

#include "ops/cuda/primitives/mma.cuh"

namespace bev::cuda {

// kRows rows of kColumns elements, a multiple of 64.
template <class T, int kRows, int kColumns>
struct SharedTile {
  static_assert(sizeof(T) == 2 && kColumns % 64 == 0);
  static constexpr int kChunks = kColumns / 8;
  static constexpr int kBytes = kRows * kColumns * 2;

  unsigned char* base;

  __device__ __forceinline__ unsigned char* chunk(int row, int chunk) const {
    return base + row * (kColumns * 2) + ((chunk ^ (row & 7)) << 4);
  }

  // Copies `rows` rows of head_dim elements from `from`, `stride` elements apart; the rest of the
  // tile becomes zero. `wide`: the rows are 16-byte aligned and head_dim is a multiple of 8. Done
  // after wait_for_copies() and a barrier.
  template <int kThreads>
  __device__ __forceinline__ void load(const T* from, int64_t stride, int rows, int head_dim,
                                       bool wide) const {
    static_assert(kThreads % kChunks == 0 && (kRows * kChunks) % kThreads == 0);
    constexpr int kStep = kThreads / kChunks;
    const auto column = static_cast<int>(threadIdx.x % kChunks);
    const auto first = static_cast<int>(threadIdx.x / kChunks);
    if (wide) {
      const T* source = from + first * stride + column * 8;
      const int rows_of_column = column * 8 < head_dim ? rows : 0;
      unsigned char* const to = chunk(first, column);
#pragma unroll
      for (int n = 0; n < kRows / kStep; ++n, source += kStep * stride) {
        // Steps of 8 rows permute alike.
        unsigned char* const next =
            kStep % 8 == 0 ? to + n * kStep * (kColumns * 2) : chunk(first + n * kStep, column);
        copy_async<16>(next, source, first + n * kStep < rows_of_column);
      }
    } else {
#pragma unroll 1
      for (int row = first; row < kRows; row += kStep) {
        const T* source = from + row * stride + column * 8;
        const int left = row < rows ? head_dim - column * 8 : 0;
        uint32_t words[4] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const uint32_t bits =
              e < left ? reinterpret_cast<const uint16_t*>(source)[e] : uint16_t{0};
          words[e / 2] |= bits << (e % 2 * 16);
        }
        *reinterpret_cast<uint4*>(chunk(row, column)) =
            make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }

  // In the following, rows are counted from `row`, a multiple of 8.

  // A[16, 16] = rows [0, 16), columns [16 k, 16 k + 16).
  __device__ __forceinline__ void a_fragment(uint32_t (&a)[4], int row, int k, int lane) const {
    load_matrices(a, lane_chunk(row, lane % 16, lane / 16, k));
  }
  // The same, written.
  __device__ __forceinline__ void store_fragment(const uint32_t (&a)[4], int row, int k,
                                                 int lane) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      unsigned char* const to = lane_chunk(row + e % 2 * 8, lane / 4, e / 2, k);
      *reinterpret_cast<uint32_t*>(to + lane % 4 * 4) = a[e];
    }
  }
  // A[m][k] = element (k, 16 c + m).
  __device__ __forceinline__ void a_of_columns(uint32_t (&a)[4], int row, int c, int lane) const {
    load_transposed(a, lane_chunk(row, lane % 8 + lane / 16 * 8, lane / 8 % 2, c));
  }
  // B[k][n] = element (n, 16 k + k): two fragments, of n < 8 (b[0], b[1]) and n >= 8.
  __device__ __forceinline__ void b_of_rows(uint32_t (&b)[4], int row, int k, int lane) const {
    load_matrices(b, lane_chunk(row, lane % 8 + lane / 16 * 8, lane / 8 % 2, k));
  }
  // B[k][n] = element (k, 16 c + n): two fragments, of n < 8 and n >= 8.
  __device__ __forceinline__ void b_of_columns(uint32_t (&b)[4], int row, int c, int lane) const {
    load_transposed(b, lane_chunk(row, lane % 16, lane / 16, c));
  }

 private:
  // chunk(row + lane_row, 2 * pair + odd). The exclusive or is taken in two steps, so that what
  // differs between lanes is computed once for all rows and tiles.
  __device__ __forceinline__ unsigned char* lane_chunk(int row, int lane_row, int odd,
                                                       int pair) const {
    const int inside = lane_row * (kColumns * 2) + ((odd ^ (lane_row & 7)) << 4);
    return base + row * (kColumns * 2) + (inside ^ pair << 5);
  }
};

// The 16 rows of a tile that a warp multiplies from the left, kept in registers or read each time.
template <class Tile, int kColumns, bool kHeld>
struct LeftRows {
  Tile tile;
  int row;
  uint32_t held[kHeld ? kColumns / 16 : 1][4];

  // After this a held tile's memory is free, once every warp has passed a barrier.
  __device__ __forceinline__ void hold(int lane) {
    if constexpr (kHeld) {
#pragma unroll
      for (int k = 0; k < kColumns / 16; ++k) tile.a_fragment(held[k], row, k, lane);
    }
  }
  __device__ __forceinline__ void fragment(uint32_t (&a)[4], int k, int lane) const {
    if constexpr (kHeld) {
#pragma unroll
      for (int e = 0; e < 4; ++e) a[e] = held[k][e];
    } else {
      tile.a_fragment(a, row, k, lane);
    }
  }
};

// C[16, 8 * kTiles] += A B^T with A the left rows and B the first rows of `right`.
template <class T, int kColumns, int kTiles, class Left, class Right>
__device__ __forceinline__ void add_product_of_rows(float (&c)[kTiles][4], const Left& left,
                                                    const Right& right, int lane) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    uint32_t a[4];
    left.fragment(a, k, lane);
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      uint32_t b[4];
      right.b_of_rows(b, pair * 16, k, lane);
      multiply_add<T>(c[2 * pair], a, b[0], b[1]);
      multiply_add<T>(c[2 * pair + 1], a, b[2], b[3]);
    }
  }
}

// The same for several groups of 16 left rows, each with its own C, and the rows of `right` from
// `row` on: what is read of `right` serves all groups.
template <class T, int kColumns, int kGroups, int kTiles, class Left, class Right>
__device__ __forceinline__ void add_products_of_rows(float (&c)[kGroups][kTiles][4],
                                                     const Left (&left)[kGroups],
                                                     const Right& right, int row, int lane) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    uint32_t a[kGroups][4];
#pragma unroll
    for (int group = 0; group < kGroups; ++group) left[group].fragment(a[group], k, lane);
#pragma unroll
    for (int pair = 0; pair < kTiles / 2; ++pair) {
      uint32_t b[4];
      right.b_of_rows(b, row + pair * 16, k, lane);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        multiply_add<T>(c[group][2 * pair], a[group], b[0], b[1]);
        multiply_add<T>(c[group][2 * pair + 1], a[group], b[2], b[3]);
      }
    }
  }
}

// Two C fragments of adjacent columns as the A fragment of the next product.
template <class T>
__device__ __forceinline__ void as_a_fragment(uint32_t (&a)[4], const float (&left)[4],
                                              const float (&right)[4]) {
  a[0] = packed<T>(left[0], left[1]);
  a[1] = packed<T>(left[2], left[3]);
  a[2] = packed<T>(right[0], right[1]);
  a[3] = packed<T>(right[2], right[3]);
}

// C[16, kColumns] += A B with A in the C fragments of an earlier product and B the rows of `right`,
// its columns from 16 * chunk on.
template <class T, int kColumns, int kTiles, class Right>
__device__ __forceinline__ void add_product(float (&c)[kColumns / 8][4],
                                            const float (&left)[kTiles][4], const Right& right,
                                            int chunk, int lane) {
#pragma unroll
  for (int k = 0; k < kTiles / 2; ++k) {
    uint32_t a[4];
    as_a_fragment<T>(a, left[2 * k], left[2 * k + 1]);
#pragma unroll
    for (int column = 0; column < kColumns / 16; ++column) {
      uint32_t b[4];
      right.b_of_columns(b, k * 16, chunk + column, lane);
      multiply_add<T>(c[2 * column], a, b[0], b[1]);
      multiply_add<T>(c[2 * column + 1], a, b[2], b[3]);
    }
  }
}

// The same for several groups of 16 rows whose A is packed already, and the rows of `right` from
// `row` on.
template <class T, int kColumns, int kGroups, int kSteps, class Right>
__device__ __forceinline__ void add_products(float (&c)[kGroups][kColumns / 8][4],
                                             const uint32_t (&a)[kGroups][kSteps][4],
                                             const Right& right, int row, int chunk, int lane) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
#pragma unroll
    for (int column = 0; column < kColumns / 16; ++column) {
      uint32_t b[4];
      right.b_of_columns(b, row + k * 16, chunk + column, lane);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        multiply_add<T>(c[group][2 * column], a[group][k], b[0], b[1]);
        multiply_add<T>(c[group][2 * column + 1], a[group][k], b[2], b[3]);
      }
    }
  }
}

}  // namespace bev::cuda
