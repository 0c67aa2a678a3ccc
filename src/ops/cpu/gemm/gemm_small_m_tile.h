// Few rows of a times columns of b, a template over the vector type. Included by the files that are
// compiled per instruction set; see the rules in simd.h.
#pragma once

#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/gemm/gemm_epilogue.h"
#include "ops/cpu/gemm/gemm_kernel.h"
#include "ops/cpu/simd/lane_sums.h"

namespace bev::cpu {

// kRows x 4 vectors of sums are held in registers; more rows pass by the same columns of b again,
// while those are in the cache.
template <class V, int kRows>
class SmallMProblem {
 public:
  // The vectors of kRows rows side by side, then those of the next rows; zeros beyond k.
  static void pack(const Gemm& g, float* packed) {
    if (g.a.dtype == DType::f32) {
      pack_from(static_cast<const float*>(g.a.data), g, packed);
    } else {
      pack_from(static_cast<const bf16*>(g.a.data), g, packed);
    }
  }

  static void multiply(const Gemm& g, const float* packed, int64_t column, int64_t columns,
                       int64_t next) {
    alignas(64) float values[kFewRows * kFewColumns];
    if (g.b.dtype == DType::f32) {
      multiply_by(static_cast<const float*>(g.b.data), g, packed, {column, columns, next}, values);
    } else {
      multiply_by(static_cast<const bf16*>(g.b.data), g, packed, {column, columns, next}, values);
    }
    const bool adds = g.accumulate && g.c_dtype == DType::f32;
    GemmEpilogue<V, kFewColumns>::finish(
        g, {.values = values,
            .partial = adds ? static_cast<const float*>(g.c) + column : nullptr,
            .partial_stride = g.c_stride,
            .row = 0,
            .column = column,
            .rows = g.m,
            .columns = columns});
  }

 private:
  static int64_t vectors_of(const Gemm& g) { return (g.k + V::kWidth - 1) / V::kWidth; }
  static int64_t rows_from(const Gemm& g, int64_t row) {
    return g.m - row < kRows ? g.m - row : kRows;
  }

  template <class T>
  static void pack_from(const T* a, const Gemm& g, float* packed) {
    for (int64_t row = 0; row < g.m; row += kRows) {
      const int64_t rows = rows_from(g, row);
      for (int64_t v = 0; v < vectors_of(g); ++v) {
        const int64_t d = v * V::kWidth;
        for (int64_t r = row; r < row + rows; ++r, packed += V::kWidth) {
          V::load(a + r * g.a.row_stride + d, g.k - d).store(packed);
        }
      }
    }
  }

  struct Columns {
    int64_t first, count, next;
  };

  template <class T>
  static void multiply_by(const T* b, const Gemm& g, const float* packed, const Columns& columns,
                          float* values) {
    const auto column = [&](int64_t at) { return b + at * g.b.col_stride; };
    for (int64_t j = 0; j < columns.count; j += 4) {
      // Where there are fewer than four, the last one again.
      const T* four[4];
      for (int64_t i = 0; i < 4; ++i) {
        four[i] = column(columns.first + (j + i < columns.count ? j + i : columns.count - 1));
      }
      const int64_t next = j + 4 < columns.count ? columns.first + j + 4 : columns.next;
      Feed feed(column(next), next < g.n, (g.m + kRows - 1) / kRows);
      const float* a = packed;
      for (int64_t row = 0; row < g.m; row += kRows) {
        const int64_t rows = rows_from(g, row);
        tiles<T>(rows)(a, four, feed, g.k, values + row * kFewColumns + j);
        a += rows * vectors_of(g) * V::kWidth;
      }
    }
  }

  // Brings the next columns near while the current ones are multiplied, in equal parts for every
  // pass over them.
  class Feed {
   public:
    template <class T>
    Feed(const T* next, bool is_there, int64_t passes) : at_(reinterpret_cast<const char*>(next)) {
      constexpr int64_t kBytes = 4 * V::kWidth * sizeof(T);
      lines_ = is_there ? (kBytes / 64 + passes - 1) / passes : 0;
    }
    void step() {
      for (int64_t i = 0; i < lines_; ++i, at_ += 64) __builtin_prefetch(at_, 0, 2);
    }

   private:
    const char* at_;
    int64_t lines_;
  };

  template <class T>
  using Tile = void (*)(const float* a, const T* const (&b)[4], Feed& feed, int64_t k,
                        float* values);

  template <class T>
  static Tile<T> tiles(int64_t rows) {
    static_assert(kRows == 2 || kRows == 4);
    if constexpr (kRows == 4) {
      if (rows == 4) return tile<T, 4>;
      if (rows == 3) return tile<T, 3>;
    }
    return rows == 2 ? tile<T, 2> : tile<T, 1>;
  }

  template <class T, int rows>
  static void tile(const float* a, const T* const (&b)[4], Feed& feed, int64_t k, float* values) {
    const T *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    V sum[rows][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = sum[r][2] = sum[r][3] = V::zero();
    const auto add = [&](V c0, V c1, V c2, V c3) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r, a += V::kWidth) {
        const V left = V::load(a);
        sum[r][0] = fma(left, c0, sum[r][0]);
        sum[r][1] = fma(left, c1, sum[r][1]);
        sum[r][2] = fma(left, c2, sum[r][2]);
        sum[r][3] = fma(left, c3, sum[r][3]);
      }
    };
    int64_t d = 0;
    for (; d + V::kWidth <= k; d += V::kWidth) {
      feed.step();
      add(V::load(b0 + d), V::load(b1 + d), V::load(b2 + d), V::load(b3 + d));
    }
    if (d < k) {
      add(V::load(b0 + d, k - d), V::load(b1 + d, k - d), V::load(b2 + d, k - d),
          V::load(b3 + d, k - d));
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      store_lane_sums(sum[r][0], sum[r][1], sum[r][2], sum[r][3], values + r * kFewColumns);
    }
  }
};

}  // namespace bev::cpu
