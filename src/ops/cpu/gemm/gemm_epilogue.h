// What is done to sums before they become c, a template over the vector type. Included by the files
// that are compiled per instruction set; see the rules in simd.h.
#pragma once

#include <type_traits>

#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/simd/simd.h"

namespace bev::cpu {

// The sums of rows x columns of c from (row, column) on: [rows][kColumns] of the epilogue, which
// may overwrite them.
struct GemmSums {
  float* values;
  const float* partial;  // what is added to them first, of the same place; null: nothing
  int64_t partial_stride;
  int64_t row, column, rows, columns;
};

template <class V, int kColumns>
class GemmEpilogue {
 public:
  static void finish(const Gemm& g, const GemmSums& s) {
    if (g.c_dtype == DType::f32) {
      finish_as<float>(g, s);
    } else {
      finish_as<bf16>(g, s);
    }
  }

 private:
  // Calls f(row, first column, columns up to V::kWidth) for every vector.
  template <class F>
  [[gnu::always_inline]] static void each_vector(int64_t rows, int64_t columns, F&& f) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < columns; j += V::kWidth) {
        f(r, j, columns - j < V::kWidth ? columns - j : V::kWidth);
      }
    }
  }

  template <class T>
  static void finish_as(const Gemm& g, const GemmSums& s) {
    constexpr bool is_rounded = !std::is_same_v<T, float>;
    T* c = static_cast<T*>(g.c) + s.row * g.c_stride + s.column;
    T* pre = static_cast<T*>(g.pre_activation);
    if (pre != nullptr) pre += s.row * g.pre_activation_stride + s.column;
    alignas(64) float bias[kColumns] = {};
    if (g.bias != nullptr) load_bias(g, s.column, s.columns, bias);

    each_vector(s.rows, s.columns, [&](int64_t r, int64_t j, int64_t count) {
      float* value = s.values + r * kColumns + j;
      V x = V::load(value);
      if (s.partial != nullptr) x = x + V::load(s.partial + r * s.partial_stride + j, count);
      if (is_rounded && g.accumulate) x = x + V::load(c + r * g.c_stride + j, count);
      if (g.bias != nullptr) x = x + V::load(bias + j);
      if (is_rounded && g.activate) x = x.as_bf16();
      if (pre != nullptr) x.store(pre + r * g.pre_activation_stride + j, count);
      x.store(value);
    });
    if (g.activate) {
      with_activation<V>(g.activation, [&](auto function, auto) {
        each_vector(s.rows, s.columns, [&](int64_t r, int64_t j, int64_t) {
          float* value = s.values + r * kColumns + j;
          function(V::load(value)).store(value);
        });
      });
    }
    if (g.activation_input != nullptr) {
      const T* input =
          static_cast<const T*>(g.activation_input) + s.row * g.activation_input_stride + s.column;
      with_activation<V>(g.activation, [&](auto, auto slope) {
        each_vector(s.rows, s.columns, [&](int64_t r, int64_t j, int64_t count) {
          float* value = s.values + r * kColumns + j;
          const V x = V::load(input + r * g.activation_input_stride + j, count);
          (V::load(value) * slope(x)).store(value);
        });
      });
    }
    each_vector(s.rows, s.columns, [&](int64_t r, int64_t j, int64_t count) {
      V::load(s.values + r * kColumns + j).store(c + r * g.c_stride + j, count);
    });
  }

  static void load_bias(const Gemm& g, int64_t column, int64_t columns, float* bias) {
    each_vector(1, columns, [&](int64_t, int64_t j, int64_t count) {
      const V x = g.bias_dtype == DType::f32
                      ? V::load(static_cast<const float*>(g.bias) + column + j, count)
                      : V::load(static_cast<const bf16*>(g.bias) + column + j, count);
      x.store(bias + j);
    });
  }
};

}  // namespace bev::cpu
