// Sums, conversions, activations and rotations of arrays. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

template <class V, class T>
void add(const T* a, const T* b, T* out, int64_t count) {
  each_vector<V>(count, [&](int64_t i, auto lanes) {
    lanes.store(lanes.load(a + i) + lanes.load(b + i), out + i);
  });
}

template <class V, class T>
void accumulate(const T* x, float* sum, int64_t count) {
  each_vector<V>(count, [&](int64_t i, auto lanes) {
    lanes.store(lanes.load(sum + i) + lanes.load(x + i), sum + i);
  });
}

template <class V, class From, class To>
void convert(const From* in, To* out, int64_t count) {
  each_vector<V>(count, [&](int64_t i, auto lanes) { lanes.store(lanes.load(in + i), out + i); });
}

template <class V, class T>
void activate(Activation activation, const T* x, const T* up, T* y, int64_t count) {
  with_activation<V>(activation, [&](auto function, auto) {
    if (up == nullptr) {
      each_vector<V>(
          count, [&](int64_t i, auto lanes) { lanes.store(function(lanes.load(x + i)), y + i); });
    } else {
      each_vector<V>(count, [&](int64_t i, auto lanes) {
        lanes.store(function(lanes.load(x + i)) * lanes.load(up + i), y + i);
      });
    }
  });
}

template <class V, class T>
void activate_backward(Activation activation, const T* dy, const T* x, const T* up, T* dx, T* dup,
                       int64_t count) {
  with_activation<V>(activation, [&](auto function, auto slope) {
    if (up == nullptr) {
      each_vector<V>(count, [&](int64_t i, auto lanes) {
        lanes.store(lanes.load(dy + i) * slope(lanes.load(x + i)), dx + i);
      });
    } else {
      each_vector<V>(count, [&](int64_t i, auto lanes) {
        const V gate = lanes.load(x + i);
        const V d = lanes.load(dy + i);
        const V dgate = d * lanes.load(up + i) * slope(gate);
        lanes.store(d * function(gate), dup + i);
        lanes.store(dgate, dx + i);
      });
    }
  });
}

template <class V, class T>
void rope(const RopeToken<T>& r) {
  const V sign = V::broadcast(r.inverse ? -1.0f : 1.0f);
  for (int64_t head = 0; head < r.heads; ++head) {
    T* low = r.x + head * r.head_stride;
    T* high = low + r.half;
    each_vector<V>(r.half, [&](int64_t i, auto lanes) {
      const V c = lanes.load(r.cosine + i), s = lanes.load(r.sine + i) * sign;
      const V a = lanes.load(low + i), b = lanes.load(high + i);
      lanes.store(a * c - b * s, low + i);
      lanes.store(fma(b, c, a * s), high + i);
    });
  }
}

}  // namespace bev::cpu
