// Packing of operands into panels, a template over the vector type. Included by the files that are
// compiled per instruction set; see the rules in simd.h.
#pragma once

#include <type_traits>

#include "ops/cpu/gemm/gemm_kernel.h"
#include "ops/cpu/simd/simd.h"

namespace bev::cpu {

// Four floats, for panels narrower than V. Of V so that each instruction set has its own.
template <class V>
struct Quad {
  static constexpr int kWidth = 4;
  using Floats = float __attribute__((vector_size(16)));
  using Words = int32_t __attribute__((vector_size(16)));
  Floats v;

  static Quad load(const float* p) {
    Quad q;
    __builtin_memcpy(&q.v, p, sizeof q.v);
    return q;
  }
  static Quad load(const bf16* p) {
    const Words bits{p[0].bits << 16, p[1].bits << 16, p[2].bits << 16, p[3].bits << 16};
    return {reinterpret_cast<Floats>(bits)};
  }
  static Quad load_quads(const float* p, int64_t) { return load(p); }
  void store(float* p) const { __builtin_memcpy(p, &v, sizeof v); }
};

template <class V>
void transpose_quads(Quad<V>& a, Quad<V>& b, Quad<V>& c, Quad<V>& d) {
  const auto low_ab = __builtin_shufflevector(a.v, b.v, 0, 4, 1, 5);
  const auto high_ab = __builtin_shufflevector(a.v, b.v, 2, 6, 3, 7);
  const auto low_cd = __builtin_shufflevector(c.v, d.v, 0, 4, 1, 5);
  const auto high_cd = __builtin_shufflevector(c.v, d.v, 2, 6, 3, 7);
  a.v = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
  b.v = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
  c.v = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
  d.v = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

// Packs panels of kLanes lanes with vectors of type U. A panel holds element (lane, d) at
// [d * kLanes + lane]; the next one follows after kLanes * depth.
template <class U, int kLanes>
class PanelPacker {
  static_assert(kLanes % U::kWidth == 0);

 public:
  static void pack(const GemmPanels& source, float* packed) {
    if (source.dtype == DType::f32) {
      pack_from(static_cast<const float*>(source.data), source, packed);
    } else {
      pack_from(static_cast<const bf16*>(source.data), source, packed);
    }
  }

 private:
  // Panels are copied several at a time, so that longer runs of the source are read; few enough for
  // the ways of the cache, since panels often lie a multiple of its size apart.
  static constexpr int64_t kGroup = kLanes >= 16 ? 48 / kLanes : 32 / kLanes;
  static constexpr int64_t kStage = 64;  // elements of depth converted at a time

  template <class T>
  static void pack_from(const T* data, const GemmPanels& source, float* packed) {
    int64_t lane = 0;
    const auto panel = [&](int64_t at) { return packed + at * source.depth; };
    if (source.lane_stride == 1) {
      for (; lane + kGroup * kLanes <= source.lanes; lane += kGroup * kLanes) {
        copy<kGroup>(data + lane, source, panel(lane));
      }
      for (; lane + kLanes <= source.lanes; lane += kLanes) {
        copy<1>(data + lane, source, panel(lane));
      }
      if (lane < source.lanes) copy_part(data + lane, source, source.lanes - lane, panel(lane));
      return;
    }
    for (; lane < source.lanes; lane += kLanes) {
      for (int64_t i = 0; i < kLanes && lane + i < source.lanes; i += U::kWidth) {
        const int64_t lanes = source.lanes - lane - i;
        const T* rows = data + (lane + i) * source.lane_stride;
        if (std::is_same_v<T, float> && lanes >= U::kWidth) {
          transpose(reinterpret_cast<const float*>(rows), source.lane_stride, source.depth,
                    panel(lane) + i);
        } else {
          transpose_staged(rows, source, lanes, panel(lane) + i);
        }
      }
    }
  }

  template <int64_t panels, class T>
  static void copy(const T* rows, const GemmPanels& source, float* packed) {
    for (int64_t d = 0; d < source.depth; ++d) {
      const T* row = rows + d * source.depth_stride;
      for (int64_t p = 0; p < panels; ++p) {
        float* target = packed + p * kLanes * source.depth + d * kLanes;
        for (int i = 0; i < kLanes; i += U::kWidth) {
          U::load(row + p * kLanes + i).store(target + i);
        }
      }
    }
  }

  // Only the vectors that have lanes are written.
  template <class T>
  static void copy_part(const T* rows, const GemmPanels& source, int64_t lanes, float* packed) {
    for (int64_t d = 0; d < source.depth; ++d) {
      const T* row = rows + d * source.depth_stride;
      float* target = packed + d * kLanes;
      int64_t i = 0;
      for (; i + U::kWidth <= lanes; i += U::kWidth) U::load(row + i).store(target + i);
      for (; i < lanes; ++i) target[i] = widen(row[i]);
      for (; i % U::kWidth != 0; ++i) target[i] = 0;
    }
  }

  // U::kWidth lanes. Four steps of depth at a time: load_quads puts lanes i, i + 4, i + 8, ... into
  // one vector, and transposing the 4 x 4 blocks of four such vectors gives the lanes of one step.
  static void transpose(const float* rows, int64_t stride, int64_t depth, float* packed) {
    int64_t d = 0;
    for (; d + 4 <= depth; d += 4) {
      U q0 = U::load_quads(rows + d, 4 * stride);
      U q1 = U::load_quads(rows + d + stride, 4 * stride);
      U q2 = U::load_quads(rows + d + 2 * stride, 4 * stride);
      U q3 = U::load_quads(rows + d + 3 * stride, 4 * stride);
      transpose_quads(q0, q1, q2, q3);
      q0.store(packed + d * kLanes);
      q1.store(packed + (d + 1) * kLanes);
      q2.store(packed + (d + 2) * kLanes);
      q3.store(packed + (d + 3) * kLanes);
    }
    for (; d < depth; ++d) {
      for (int i = 0; i < U::kWidth; ++i) packed[d * kLanes + i] = rows[i * stride + d];
    }
  }

  // Through a buffer of floats: conversion, and zeros for the lanes that do not exist.
  template <class T>
  static void transpose_staged(const T* rows, const GemmPanels& source, int64_t lanes,
                               float* packed) {
    alignas(64) float stage[U::kWidth * kStage];
    for (int64_t d = 0; d < source.depth; d += kStage) {
      const int64_t steps = source.depth - d < kStage ? source.depth - d : kStage;
      for (int64_t i = 0; i < U::kWidth; ++i) {
        const T* row = rows + i * source.lane_stride + d;
        for (int64_t s = 0; s < steps; ++s) stage[i * kStage + s] = i < lanes ? widen(row[s]) : 0;
      }
      transpose(stage, kStage, steps, packed + d * kLanes);
    }
  }

  static float widen(float x) { return x; }
  static float widen(bf16 x) { return __builtin_bit_cast(float, uint32_t{x.bits} << 16); }
};

}  // namespace bev::cpu
