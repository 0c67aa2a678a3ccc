// Optimizer updates of flat ranges: one pass over memory. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

// The weights that are updated, and where their rounded copy goes if it is another array.
template <class V, class T>
struct Weights {
  T* param;
  float* master;

  template <class Lanes>
  V load(int64_t i, Lanes lanes) const {
    return master != nullptr ? lanes.load(master + i) : lanes.load(param + i);
  }
  template <class Lanes>
  void store(V p, int64_t i, Lanes lanes) const {
    if (master != nullptr) lanes.store(p, master + i);
    lanes.store(p, param + i);
  }
};

template <class V, class T>
void adamw(const AdamWRange<T>& a) {
  const Weights<V, T> weights{a.param, a.master};
  const V factor = V::broadcast(a.factor);
  const V beta1 = V::broadcast(a.beta1), rest1 = V::broadcast(a.one_minus_beta1);
  const V beta2 = V::broadcast(a.beta2), rest2 = V::broadcast(a.one_minus_beta2);
  const V root_correction2 = V::broadcast(a.root_correction2), eps = V::broadcast(a.eps);
  const V step_size = V::broadcast(a.step_size), decay = V::broadcast(a.decay);
  each_vector<V>(a.count, [&](int64_t i, auto lanes) {
    const V g = lanes.load(a.grad + i) * factor;
    const V m = fma(beta1, lanes.load(a.m + i), rest1 * g);
    const V v = fma(beta2, lanes.load(a.v + i), rest2 * g * g);
    const V step = step_size * m / (sqrt(v) / root_correction2 + eps);
    lanes.store(m, a.m + i);
    lanes.store(v, a.v + i);
    weights.store(weights.load(i, lanes) * decay - step, i, lanes);
  });
}

template <class V, class T>
void sgd(const SgdRange<T>& s) {
  const Weights<V, T> weights{s.param, s.master};
  const V factor = V::broadcast(s.factor), weight_decay = V::broadcast(s.weight_decay);
  const V momentum = V::broadcast(s.momentum), minus_lr = V::broadcast(-s.lr);
  each_vector<V>(s.count, [&](int64_t i, auto lanes) {
    const V p = weights.load(i, lanes);
    const V d = fma(weight_decay, p, lanes.load(s.grad + i) * factor);
    const V buffer = s.first ? d : fma(momentum, lanes.load(s.buffer + i), d);
    lanes.store(buffer, s.buffer + i);
    weights.store(fma(minus_lr, buffer, p), i, lanes);
  });
}

}  // namespace bev::cpu
