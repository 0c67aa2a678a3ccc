// The passes of LAMB over a chunk of flat memory. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/kernels/reduce_kernels.h"
#include "ops/cpu/kernels/update_kernels.h"

namespace bev::cpu {

// The update that follows from moments.
template <class V>
struct LambDirection {
  V first, root_correction2, eps;

  explicit LambDirection(const LambScalars& s)
      : first(V::broadcast(s.first)),
        root_correction2(V::broadcast(s.root_correction2)),
        eps(V::broadcast(s.eps)) {}
  V operator()(V moment, V square) const {
    return first * moment / (sqrt(square) / root_correction2 + eps);
  }
};

template <class V>
void lamb_moments(const LambMomentsRange& a, double* squares) {
  const LambScalars& s = a.scalars;
  const LambDirection<V> direction(s);
  const V gradient = V::broadcast(s.gradient), coupled = V::broadcast(s.coupled_decay);
  const V decay = V::broadcast(s.decay);
  const V beta1 = V::broadcast(s.beta1), rest1 = V::broadcast(s.rest1);
  const V beta2 = V::broadcast(s.beta2), rest2 = V::broadcast(s.rest2);
  DoublePair<V> sums[3] = {};
  each_vector<V>(a.count, [&](int64_t i, auto lanes) {
    const V w = lanes.load(a.weights + i);
    const V g = fma(coupled, w, lanes.load(a.grad + i) * gradient);
    const V m = lanes.load(a.m + i);
    const V v = fma(beta2, lanes.load(a.v + i), rest2 * g * g);
    lanes.store(v, a.v + i);
    sums[0].add_squares(w);
    if (a.q != nullptr) {
      const V deviation = g - m;
      const V q = fma(beta2, lanes.load(a.q + i), rest2 * deviation * deviation);
      lanes.store(q, a.q + i);
      sums[1].add_squares(lanes.live_or(direction(m, v), 0));
      sums[2].add_squares(lanes.live_or(direction(deviation, q), 0));
    } else {
      const V next = fma(beta1, m, rest1 * g);
      lanes.store(next, a.m + i);
      sums[1].add_squares(lanes.live_or(fma(decay, w, direction(next, v)), 0));
    }
  });
  for (int k = 0; k < 3; ++k) squares[k] = sums[k].total();
}

template <class V, class T>
void lamb_update(const LambUpdateRange<T>& a) {
  const LambScalars& s = a.scalars;
  const Weights<V, T> weights{a.param, a.master};
  const LambDirection<V> direction(s);
  const V gradient = V::broadcast(s.gradient), coupled = V::broadcast(s.coupled_decay);
  const V decay = V::broadcast(s.decay);
  const V beta1 = V::broadcast(s.beta1), rest1 = V::broadcast(s.rest1);
  const V minus_step = V::broadcast(-a.step), minus_noise_step = V::broadcast(-a.noise_step);
  const V kept = V::broadcast(1 - a.rate * s.decay);
  each_vector<V>(a.count, [&](int64_t i, auto lanes) {
    const V w = weights.load(i, lanes), m = lanes.load(a.m + i);
    const V u = direction(m, lanes.load(a.v + i));
    if (a.q != nullptr) {
      const V g = fma(coupled, w, lanes.load(a.grad + i) * gradient);
      const V noise = direction(g - m, lanes.load(a.q + i));
      lanes.store(fma(beta1, m, rest1 * g), a.m + i);
      weights.store(fma(minus_noise_step, noise, fma(minus_step, u, w * kept)), i, lanes);
    } else {
      weights.store(fma(minus_step, fma(decay, w, u), w), i, lanes);
    }
  });
}

}  // namespace bev::cpu
