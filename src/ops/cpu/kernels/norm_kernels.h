// Rows of layer norm and RMS norm. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

template <class V, class T>
void norm_row(const NormRow<T>& n) {
  const auto width = static_cast<float>(n.width);
  float mean = 0;
  if (n.mean != nullptr) {
    Chains<V> sums;
    each_vector_chained<V>(n.width, [&](int64_t i, auto lanes, int chain) {
      sums[chain] = sums[chain] + lanes.load(n.x + i);
    });
    mean = sums.total() / width;
    *n.mean = mean;
  }
  const V centre = V::broadcast(mean);
  Chains<V> squares;
  each_vector_chained<V>(n.width, [&](int64_t i, auto lanes, int chain) {
    const V d = lanes.live_or(lanes.load(n.x + i) - centre, 0.0f);
    squares[chain] = fma(d, d, squares[chain]);
  });
  const auto variance = static_cast<double>(squares.total() / width);
  *n.rstd = static_cast<float>(1 / __builtin_sqrt(variance + n.eps));
  const V rstd = V::broadcast(*n.rstd);
  if (n.bias != nullptr) {
    each_vector<V>(n.width, [&](int64_t i, auto lanes) {
      const V scaled = (lanes.load(n.x + i) - centre) * rstd;
      lanes.store(fma(scaled, lanes.load(n.weight + i), lanes.load(n.bias + i)), n.y + i);
    });
  } else {
    each_vector<V>(n.width, [&](int64_t i, auto lanes) {
      const V scaled = (lanes.load(n.x + i) - centre) * rstd;
      lanes.store(scaled * lanes.load(n.weight + i), n.y + i);
    });
  }
}

template <class V, class T>
void norm_backward_row(const NormBackwardRow<T>& n) {
  const auto width = static_cast<float>(n.width);
  const V centre = V::broadcast(n.mean), rstd = V::broadcast(n.rstd);
  Chains<V> g_sums, product_sums;
  each_vector_chained<V>(n.width, [&](int64_t i, auto lanes, int chain) {
    const V g = lanes.load(n.dy + i) * lanes.load(n.weight + i);
    const V xhat = (lanes.load(n.x + i) - centre) * rstd;
    g_sums[chain] = g_sums[chain] + g;
    product_sums[chain] = fma(g, xhat, product_sums[chain]);
  });
  const V mean_g = V::broadcast(n.centred ? g_sums.total() / width : 0.0f);
  const V minus_mean_product = V::broadcast(-(product_sums.total() / width));
  const auto slope = [&](int64_t i, auto lanes) {
    const V g = lanes.load(n.dy + i) * lanes.load(n.weight + i);
    const V xhat = (lanes.load(n.x + i) - centre) * rstd;
    return fma(xhat, minus_mean_product, g - mean_g);
  };
  if (n.dresidual != nullptr) {
    each_vector<V>(n.width, [&](int64_t i, auto lanes) {
      lanes.store(fma(slope(i, lanes), rstd, lanes.load(n.dresidual + i)), n.dx + i);
    });
  } else {
    each_vector<V>(n.width,
                   [&](int64_t i, auto lanes) { lanes.store(slope(i, lanes) * rstd, n.dx + i); });
  }
}

template <class V, class T>
void norm_weight_rows(const NormWeightRows<T>& n, int64_t begin, int64_t end) {
  each_vector<V>(end - begin, [&](int64_t offset, auto lanes) {
    const int64_t i = begin + offset;
    V dweight = V::zero(), dbias = V::zero();
    for (int r = 0; r < n.rows; ++r) {
      const V dy = lanes.load(n.dy[r] + i);
      const V xhat = (lanes.load(n.x[r] + i) - V::broadcast(n.mean[r])) * V::broadcast(n.rstd[r]);
      dweight = fma(dy, xhat, dweight);
      dbias = dbias + dy;
    }
    lanes.store(lanes.load(n.dweight + i) + dweight, n.dweight + i);
    if (n.dbias != nullptr) lanes.store(lanes.load(n.dbias + i) + dbias, n.dbias + i);
  });
}

template <class V, class T>
void norm_summed_rows(const NormSummedRows<T>& n, int64_t begin, int64_t end) {
  each_vector<V>(end - begin, [&](int64_t offset, auto lanes) {
    const int64_t i = begin + offset;
    V sum = V::zero();
    for (int r = 0; r < n.rows; ++r) sum = sum + lanes.load(n.dx[r] + i);
    lanes.store(lanes.load(n.sums + i) + sum, n.sums + i);
  });
}

}  // namespace bev::cpu
