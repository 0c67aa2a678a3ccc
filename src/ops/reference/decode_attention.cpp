#include "ops/decode_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/op_table.h"
#include "ops/reference/at.h"

namespace bev::reference {

namespace {

void write_row(const Tensor& cache, int64_t place, const ConstTensor& rows, int64_t row) {
  for (int64_t h = 0; h < rows.shape[1]; ++h)
    for (int64_t d = 0; d < rows.shape[2]; ++d) at(cache, place, h, d) = at(rows, row, h, d);
}

}  // namespace

void cache_write(Exec&, const ops::CacheWrite& c) {
  require_f64("cache_write", c.k.dtype);
  for (int64_t t = 0; t < c.k.rows(); ++t) {
    const int64_t place = element<int32_t>(c.places, t);
    if (place < 0) continue;
    write_row(c.keys, place, c.k, t);
    write_row(c.values, place, c.v, t);
  }
}

void decode_attention(Exec&, const ops::DecodeAttention& a) {
  require_f64("decode_attention", a.q.dtype);
  const int64_t heads = a.q.shape[1], dims = a.q.shape[2], group = heads / a.k.shape[1];
  std::vector<double> weights;
  for (int64_t i = 0; i < a.q.rows(); ++i) {
    const int64_t length = element<int32_t>(a.lengths, i);
    const auto place = [&](int64_t t) {
      return element<int32_t>(a.pages, i, t / a.page) * a.page + t % a.page;
    };
    if (length > 0) {
      write_row(a.keys, place(length - 1), a.k, i);
      write_row(a.values, place(length - 1), a.v, i);
    }
    const int64_t first = a.window > 0 ? std::max<int64_t>(0, length - a.window) : 0;
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t d = 0; d < dims; ++d) at(a.out, i, h, d) = 0;
      weights.clear();
      for (int64_t t = first; t < length; ++t) {
        double score = 0;
        for (int64_t d = 0; d < dims; ++d)
          score += at(a.q, i, h, d) * at(ConstTensor(a.keys), place(t), h / group, d);
        weights.push_back(a.scale * score);
      }
      if (weights.empty()) continue;
      const double max = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& w : weights) sum += w = std::exp(w - max);
      for (int64_t t = first; t < length; ++t) {
        const double p = weights[static_cast<size_t>(t - first)] / sum;
        for (int64_t d = 0; d < dims; ++d)
          at(a.out, i, h, d) += p * at(ConstTensor(a.values), place(t), h / group, d);
      }
    }
  }
}

}  // namespace bev::reference
