#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention_dropout.h"
#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

// One query of one head, and the keys of its sequence.
struct Query {
  int64_t index;             // among all queries
  int64_t sequence, inside;  // inside: of the sequence
  int64_t position;          // i + query_offset
  int64_t first_key, keys;
  int64_t head, kv_head;
};

// Calls body(query) for every head of every query of every sequence.
template <class Args, class Body>
void each_query(const Args& a, Body body) {
  const int64_t queries = a.q.shape[0] / a.sequences;
  const int64_t keys = a.k.shape[0] / a.sequences;
  const int64_t heads = a.q.shape[1];
  const int64_t group = heads / a.k.shape[1];
  for (int64_t sequence = 0; sequence < a.sequences; ++sequence) {
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t head = 0; head < heads; ++head) {
        body(Query{.index = sequence * queries + i,
                   .sequence = sequence,
                   .inside = i,
                   .position = i + a.mask.query_offset,
                   .first_key = sequence * keys,
                   .keys = keys,
                   .head = head,
                   .kv_head = head / group});
      }
    }
  }
}

bool sees(const ops::AttentionMask& mask, const Query& query, int64_t j) {
  if (mask.causal && j > query.position) return false;
  if (mask.window > 0 && j <= query.position - mask.window) return false;
  if (mask.document_start.present() && j < element<int32_t>(mask.document_start, query.index)) {
    return false;
  }
  const auto within = [&](const ConstTensor& lengths, int64_t index) {
    return !lengths.present() || index < element<int32_t>(lengths, query.sequence);
  };
  return within(mask.query_lengths, query.inside) && within(mask.key_lengths, j);
}

double factor(const ops::AttentionDropout& dropout, const Query& query, int64_t j) {
  if (dropout.probability == 0) return 1;
  const auto row = static_cast<uint64_t>(element<int64_t>(dropout.rows, query.index));
  const auto head = static_cast<uint64_t>(dropout.head_begin + query.head);
  const auto key = static_cast<uint64_t>(j);
  const uint32_t draw = ops::attention_draw(dropout.key, row, head, key);
  return draw < ops::attention_threshold(dropout.probability)
             ? 0
             : ops::attention_keep_factor(dropout.probability);
}

// a[i, h, :] . b[j, g, :]
double dot(const ConstTensor& a, int64_t i, int64_t h, const ConstTensor& b, int64_t j, int64_t g) {
  double sum = 0;
  for (int64_t d = 0; d < a.shape[2]; ++d) sum += at(a, i, h, d) * at(b, j, g, d);
  return sum;
}

// out[i, h, :] += factor * in[j, g, :]
void add(const Tensor& out, int64_t i, int64_t h, double factor, const ConstTensor& in, int64_t j,
         int64_t g) {
  for (int64_t d = 0; d < out.shape[2]; ++d) at(out, i, h, d) += factor * at(in, j, g, d);
}

// The score of key j of the query's sequence.
template <class Args>
double score_of(const Args& a, const Query& query, int64_t j) {
  const double product =
      a.scale * dot(a.q, query.index, query.head, a.k, query.first_key + j, query.kv_head);
  return a.bias.present() ? product + at(a.bias, query.head, query.inside, j) : product;
}

void clear(const Tensor& t) {
  for (int64_t i = 0; i < t.shape[0]; ++i) {
    for (int64_t h = 0; h < t.shape[1]; ++h) {
      for (int64_t d = 0; d < t.shape[2]; ++d) at(t, i, h, d) = 0;
    }
  }
}

}  // namespace

void attention(Exec&, const ops::Attention& a) {
  require_f64("attention", a.q.dtype);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> scores(static_cast<size_t>(a.k.shape[0] / a.sequences));
  clear(a.out);
  each_query(a, [&](const Query& query) {
    double max = -kInfinity;
    for (int64_t j = 0; j < query.keys; ++j) {
      double& score = scores[static_cast<size_t>(j)];
      score = -kInfinity;
      if (!sees(a.mask, query, j)) continue;
      score = score_of(a, query, j);
      max = std::max(max, score);
    }
    if (max == -kInfinity) {
      at(a.lse, query.sequence, query.head, query.inside) = -kInfinity;
      return;
    }
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - max);
    const double lse = max + std::log(sum);
    at(a.lse, query.sequence, query.head, query.inside) = lse;
    for (int64_t j = 0; j < query.keys; ++j) {
      const double probability = std::exp(scores[static_cast<size_t>(j)] - lse);
      if (probability == 0) continue;
      add(a.out, query.index, query.head, probability * factor(a.dropout, query, j), a.v,
          query.first_key + j, query.kv_head);
    }
  });
}

void attention_backward(Exec&, const ops::AttentionBackward& a) {
  require_f64("attention_backward", a.q.dtype);
  clear(a.dq);
  clear(a.dk);
  clear(a.dv);
  each_query(a, [&](const Query& query) {
    const int64_t i = query.index, h = query.head, g = query.kv_head;
    const double delta = dot(a.dout, i, h, a.out, i, h);
    for (int64_t key = 0; key < query.keys; ++key) {
      if (!sees(a.mask, query, key)) continue;
      const int64_t j = query.first_key + key;
      const double p =
          std::exp(score_of(a, query, key) - at(a.lse, query.sequence, h, query.inside));
      const double d = factor(a.dropout, query, key);
      const double dp = d * dot(a.dout, i, h, a.v, j, g);
      const double ds = p * (dp - delta);
      add(a.dv, j, g, p * d, a.dout, i, h);
      add(a.dq, i, h, a.scale * ds, a.k, j, g);
      add(a.dk, j, g, a.scale * ds, a.q, i, h);
      if (a.dbias.present()) at(a.dbias, h, query.inside, key) += ds;
    }
  });
}

namespace {

void write_row(const Tensor& cache, int64_t place, const ConstTensor& rows, int64_t row) {
  for (int64_t h = 0; h < rows.shape[1]; ++h)
    for (int64_t d = 0; d < rows.shape[2]; ++d) at(cache, place, h, d) = at(rows, row, h, d);
}

}  // namespace

void kv_cache_write(Exec&, const ops::KvCacheWrite& c) {
  require_f64("kv_cache_write", c.k.dtype);
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
        const int64_t column = a.bias.present() ? a.bias.shape[1] - length + t : 0;
        weights.push_back(a.scale * score + (a.bias.present() ? at(a.bias, h, column) : 0));
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
