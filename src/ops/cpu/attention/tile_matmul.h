// Products of small f32 matrices that lie in the cache, without packing. For kernel files (see
// simd.h).
#pragma once

#include "ops/cpu/simd/simd.h"

namespace bev::cpu {

// c[i][n] = sum over k of a(i, k) b[k][n], a(i, k) = a[i * a_row + k * a_step].
struct TileMatmul {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_step;
  float* c;
  int64_t c_row;
};

// The part of a product that some rows of c need: vectors of columns, and k.
struct TileRange {
  int64_t vector_begin, vector_end, depth_begin, depth_end;
};

// The block of c that is summed in registers.
template <class V>
struct TileBlock {
  static constexpr int kRows = 6;
  static constexpr int kVectors = V::kWidth == 16 ? 4 : 2;
};

// Sums start at zero and are then stored, or added to c, so that a sum over k in pieces has the
// same bits whether a piece goes through c or through a tile of its own that is added later.
template <class V, int kRows, int kVectors, bool kAdd>
void tile_block(const TileMatmul& t, int64_t row, const TileRange& range) {
  // Unrolled from the start: only then does the compiler see that the arrays are registers.
  V sums[kRows][kVectors];
  const float* a[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    a[i] = t.a + (row + i) * t.a_row + range.depth_begin * t.a_step;
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n) sums[i][n] = V::zero();
  }
  const float* b = t.b + range.depth_begin * t.b_step + range.vector_begin * V::kWidth;
  int64_t offset = 0;
  for (int64_t k = range.depth_begin; k < range.depth_end; ++k) {
    V columns[kVectors];
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n) columns[n] = V::load(b + n * V::kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V x = V::broadcast(a[i][offset]);
#pragma GCC unroll 8
      for (int n = 0; n < kVectors; ++n) sums[i][n] = fma(x, columns[n], sums[i][n]);
    }
    offset += t.a_step;
    b += t.b_step;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* c = t.c + (row + i) * t.c_row + range.vector_begin * V::kWidth;
#pragma GCC unroll 8
    for (int n = 0; n < kVectors; ++n) {
      float* to = c + n * V::kWidth;
      (kAdd ? V::load(to) + sums[i][n] : sums[i][n]).store(to);
    }
  }
}

// tile_block for a count of rows and vectors known at run time only.
template <class V, bool kAdd, int kRows = TileBlock<V>::kRows,
          int kVectors = TileBlock<V>::kVectors>
void tile_block_of(int64_t rows, int64_t vectors, const TileMatmul& t, int64_t row,
                   const TileRange& range) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      tile_block_of<V, kAdd, kRows - 1, kVectors>(rows, vectors, t, row, range);
      return;
    }
  }
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) {
      tile_block_of<V, kAdd, kRows, kVectors - 1>(rows, vectors, t, row, range);
      return;
    }
  }
  tile_block<V, kRows, kVectors, kAdd>(t, row, range);
}

// rows x vectors of c. ranges(row) gives the TileRange of the block of rows that begins there, a
// multiple of TileBlock::kRows; columns outside it are left as they are. kAdd: adds to c.
template <class V, bool kAdd, class Ranges>
void tile_matmul(const TileMatmul& t, int64_t rows, int64_t vectors, const Ranges& ranges) {
  constexpr int64_t kRows = TileBlock<V>::kRows, kVectors = TileBlock<V>::kVectors;
  for (int64_t vector = 0; vector < vectors; vector += kVectors) {
    const int64_t end = vector + kVectors < vectors ? vector + kVectors : vectors;
    for (int64_t row = 0; row < rows; row += kRows) {
      const int64_t count = rows - row < kRows ? rows - row : kRows;
      TileRange range = ranges(row);
      if (range.vector_begin < vector) range.vector_begin = vector;
      if (range.vector_end > end) range.vector_end = end;
      if (range.vector_begin >= range.vector_end) continue;
      tile_block_of<V, kAdd>(count, range.vector_end - range.vector_begin, t, row, range);
    }
  }
}

}  // namespace bev::cpu
