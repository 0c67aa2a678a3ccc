// The product of packed panels, a template over the vector type. Included by the files that are
// compiled per instruction set; see the rules in simd.h.
#pragma once

#include <utility>

#include "ops/cpu/gemm/gemm_epilogue.h"
#include "ops/cpu/gemm/gemm_panel.h"
#include "ops/cpu/gemm/gemm_small_m_tile.h"

namespace bev::cpu {

// kRows x kVectors vectors of c are summed in registers. kRowsNear rows of a stay in the cache
// while the panels of b pass by.
template <class V, int kRows, int kVectors, int kRowsNear>
class GemmTiles {
 public:
  static constexpr int kColumns = kVectors * V::kWidth;

  static void multiply(const Gemm& g, const GemmBlock& block) {
    Feed feed(block);
    const int64_t parts = (block.rows + kRowsNear - 1) / kRowsNear;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = block.rows * part / parts / kRows * kRows;
      const int64_t end =
          part + 1 == parts ? block.rows : block.rows * (part + 1) / parts / kRows * kRows;
      for (int64_t column = 0; column < block.columns; column += kColumns) {
        const int64_t columns = at_most(kColumns, block.columns - column);
        const auto& tiles = kTiles[(columns + V::kWidth - 1) / V::kWidth - 1];
        for (int64_t row = begin; row < end; row += kRows) {
          tiles[at_most(kRows, end - row) - 1](g, block, {row, column, columns}, feed);
        }
      }
    }
  }

  static void add_row_sums(const float* packed, int64_t lanes, int64_t depth, float* sums) {
    for (int64_t lane = 0; lane < lanes; lane += kRows, packed += kRows * depth) {
      // Four interleaved sums hide the latency of the addition.
      float sum[4][kRows] = {};
      for (int64_t d = 0; d < depth; ++d) {
        for (int i = 0; i < kRows; ++i) sum[d % 4][i] += packed[d * kRows + i];
      }
      for (int64_t i = 0; i < kRows && lane + i < lanes; ++i) {
        sums[lane + i] += (sum[0][i] + sum[1][i]) + (sum[2][i] + sum[3][i]);
      }
    }
  }

 private:
  struct Place {  // of a tile in its block
    int64_t row, column, columns;
  };

  static constexpr int64_t kStep = 4;   // of depth between prefetches
  static constexpr int64_t kLine = 64;  // bytes

  static int64_t at_most(int64_t limit, int64_t x) { return x < limit ? x : limit; }

  // A pointer that may be null, which must not be moved.
  template <class T>
  static T* shifted(T* p, int64_t elements) {
    return p == nullptr ? p : p + elements;
  }

  // Hands out the cache lines of block.next evenly over the steps of the block, so that they do not
  // fill the miss buffers the multiplication needs.
  class Feed {
   public:
    explicit Feed(const GemmBlock& block)
        : next_(block.next), at_(block.next.row), end_(at_ + block.next.row_bytes) {
      const int64_t tiles =
          ((block.rows + kRows - 1) / kRows) * ((block.columns + kColumns - 1) / kColumns);
      const int64_t steps = tiles * (block.depth / kStep);
      const int64_t lines = next_.rows * ((next_.row_bytes + kLine - 1) / kLine);
      lines_per_step_ = steps > 0 ? (lines + steps - 1) / steps : 0;
    }
    void step() {
      for (int64_t line = 0; line < lines_per_step_ && next_.rows > 0; ++line) {
        __builtin_prefetch(at_, 0, 3);
        at_ += kLine;
        if (at_ >= end_) {
          --next_.rows;
          next_.row += next_.stride;
          at_ = next_.row;
          end_ = at_ + next_.row_bytes;
        }
      }
    }

   private:
    GemmPrefetch next_;
    const char *at_, *end_;
    int64_t lines_per_step_ = 0;
  };

  // The memory a tile will be written to or combined with, prefetched row by row.
  class Touch {
   public:
    Touch(const void* data, DType dtype, int64_t stride, int64_t row, int64_t column,
          int64_t columns) {
      const int64_t size = dtype == DType::f32 ? 4 : 2;
      if (data == nullptr) return;
      at_ = static_cast<const char*>(data) + (row * stride + column) * size;
      bytes_ = columns * size;
      stride_ = stride * size;
    }
    void step() {
      for (int64_t i = 0; i < bytes_; i += kLine) __builtin_prefetch(at_ + i, 1, 3);
      at_ += stride_;
    }

   private:
    const char* at_ = nullptr;
    int64_t bytes_ = 0, stride_ = 0;
  };

  template <int rows, int vectors>
  static void tile(const Gemm& g, const GemmBlock& block, Place at, Feed& feed) {
    const float* a = block.a + at.row * block.depth;
    const float* b = block.b + at.column * block.depth;
    const int64_t row = block.row + at.row, column = block.column + at.column;
    const bool keep = !block.last;
    Touch out(keep ? block.partial : g.c, keep ? DType::f32 : g.c_dtype,
              keep ? block.partial_stride : g.c_stride, keep ? at.row : row,
              keep ? at.column : column, at.columns);
    const bool reads = g.activation_input != nullptr;
    Touch other(keep    ? nullptr
                : reads ? g.activation_input
                        : g.pre_activation,
                g.c_dtype, reads ? g.activation_input_stride : g.pre_activation_stride, row, column,
                at.columns);

    V sum[rows][vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = V::zero();
    }
    int64_t touched = 0;
    int64_t depth = block.depth;
    for (; depth >= kStep; depth -= kStep) {
      if (touched < rows) {
        out.step();
        other.step();
        ++touched;
      } else {
        feed.step();
      }
#pragma GCC unroll 4
      for (int step = 0; step < kStep; ++step) {
        add_product<rows, vectors>(a + step * kRows, b + step * kColumns, sum);
      }
      a += kStep * kRows;
      b += kStep * kColumns;
    }
    for (; depth > 0; --depth, a += kRows, b += kColumns) {
      add_product<rows, vectors>(a, b, sum);
    }

    float* partial = shifted(block.partial, at.row * block.partial_stride + at.column);
    if (keep || !has_epilogue(g)) {
      store<rows, vectors>(sum, partial, block, at.columns);
    } else {
      alignas(64) float values[rows * kColumns];
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sum[r][v].store(values + r * kColumns + v * V::kWidth);
      }
      GemmEpilogue<V, kColumns>::finish(g, {.values = values,
                                            .partial = block.add ? partial : nullptr,
                                            .partial_stride = block.partial_stride,
                                            .row = row,
                                            .column = column,
                                            .rows = rows,
                                            .columns = at.columns});
    }
  }

  template <int rows, int vectors>
  [[gnu::always_inline]] static void add_product(const float* a, const float* b,
                                                 V (&sum)[rows][vectors]) {
    V right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = V::load(b + v * V::kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const V left = V::broadcast(a[r]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
  }

  template <int rows, int vectors>
  [[gnu::always_inline]] static void store(const V (&sum)[rows][vectors], float* partial,
                                           const GemmBlock& block, int64_t columns) {
    const int64_t tail = columns - (vectors - 1) * V::kWidth;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        float* p = partial + r * block.partial_stride + v * V::kWidth;
        if (v + 1 < vectors || tail == V::kWidth) {
          (block.add ? sum[r][v] + V::load(p) : sum[r][v]).store(p);
        } else {
          (block.add ? sum[r][v] + V::load(p, tail) : sum[r][v]).store(p, tail);
        }
      }
    }
  }

  static bool has_epilogue(const Gemm& g) {
    return g.c_dtype != DType::f32 || g.bias != nullptr || g.activate ||
           g.pre_activation != nullptr || g.activation_input != nullptr;
  }

  using Tile = void (*)(const Gemm&, const GemmBlock&, Place, Feed&);
  struct TilesOfWidth {
    Tile of_rows[kRows];
    Tile operator[](int64_t i) const { return of_rows[i]; }
  };
  template <int vectors, int... r>
  static constexpr TilesOfWidth tiles_of_width(std::integer_sequence<int, r...>) {
    return {{&tile<r + 1, vectors>...}};
  }
  struct AllTiles {
    TilesOfWidth of_vectors[kVectors];
    const TilesOfWidth& operator[](int64_t i) const { return of_vectors[i]; }
  };
  template <int... v>
  static constexpr AllTiles all_tiles(std::integer_sequence<int, v...>) {
    return {{tiles_of_width<v + 1>(std::make_integer_sequence<int, kRows>())...}};
  }
  static constexpr AllTiles kTiles = all_tiles(std::make_integer_sequence<int, kVectors>());
};

// The table of one instruction set. Panels of a are packed in fours because they are narrower than
// a vector. kFew: rows of a that few_rows() takes at a time.
template <class V, int kRows, int kVectors, int kRowsNear, int kFew>
constexpr GemmKernels make_gemm_kernels(int64_t depth) {
  using Tiles = GemmTiles<V, kRows, kVectors, kRowsNear>;
  return {kRows,
          Tiles::kColumns,
          depth,
          &PanelPacker<Quad<V>, kRows>::pack,
          &PanelPacker<V, Tiles::kColumns>::pack,
          &Tiles::add_row_sums,
          &Tiles::multiply,
          &SmallMProblem<V, kFew>::pack,
          &SmallMProblem<V, kFew>::multiply};
}

}  // namespace bev::cpu
