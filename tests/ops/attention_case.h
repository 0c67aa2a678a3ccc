// One attention problem at a stated size, for the tests that run it forwards and backwards.
#pragma once

#include <cmath>

#include "ops/attention.h"
#include "ops/harness.h"

namespace bev::test {

struct AttentionCase {
  int64_t queries = 1, keys = 1;  // of one sequence
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
  int64_t sequences = 1;
  bool causal = true;
  int64_t window = 0;
  bool documents = false;      // packed, through document_start
  bool padding = false;        // through lengths, of queries too if there are as many as keys
  bool query_padding = false;  // through lengths that are not those of the keys
  int64_t query_offset = 0;
  double probability = 0;
  bool biased = false;
  bool fused = false;  // q, k, v are views of one [tokens, (heads + 2 kv_heads) * head_dim]

  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  Shape q_shape() const { return {sequences * queries, heads, head_dim}; }
  Shape kv_shape() const { return {sequences * keys, kv_heads, head_dim}; }
  Shape bias_shape() const { return {heads, queries, keys}; }
  Shape lse_shape() const { return {sequences, heads, queries}; }
  Shape fused_shape() const { return {sequences * queries, (heads + 2 * kv_heads) * head_dim}; }

  std::string name() const {
    return label(
        "queries={} keys={} heads={}/{} head_dim={} sequences={} causal={} window={} documents={} "
        "padding={},{} offset={} dropout={} bias={} fused={}",
        queries, keys, heads, kv_heads, head_dim, sequences, causal, window, documents, padding,
        query_padding, query_offset, probability, biased, fused);
  }

  // Documents of lengths 1 to 6; the query of every 11th position sees nothing at all when causal.
  ops::AttentionMask mask(Trial& run) const {
    ops::AttentionMask mask{.causal = causal, .window = window, .query_offset = query_offset};
    if (documents) {
      const auto lengths = random_integers(5, queries + query_offset + 1, 1, 7);
      std::vector<int64_t> start_of, first;
      for (size_t document = 0; document < lengths.size(); ++document) {
        const auto start = static_cast<int64_t>(start_of.size());
        for (int64_t i = 0; i < lengths[document]; ++i) start_of.push_back(start);
      }
      for (int64_t i = 0; i < sequences * queries; ++i) {
        const int64_t position = i % queries + query_offset;
        first.push_back(i % 11 == 10 ? position + 1 : start_of[static_cast<size_t>(position)]);
      }
      mask.document_start = run.integers({sequences * queries}, DType::i32, first);
    }
    if (padding) {
      // The last sequence is all padding.
      std::vector<int64_t> lengths = random_integers(6, sequences, 1, keys + 1);
      if (sequences > 1) lengths.back() = 0;
      mask.key_lengths = run.integers({sequences}, DType::i32, lengths);
      if (queries == keys) mask.query_lengths = mask.key_lengths;
    }
    if (query_padding) {
      const std::vector<int64_t> lengths = random_integers(7, sequences, 0, queries + 1);
      mask.query_lengths = run.integers({sequences}, DType::i32, lengths);
    }
    return mask;
  }

  ops::AttentionDropout dropout(Trial& run) const {
    ops::AttentionDropout dropout{.probability = probability, .key = 31, .head_begin = 2};
    if (probability > 0) dropout.rows = logical_rows(run, sequences * queries);
    return dropout;
  }

  struct Inputs {
    Tensor q, k, v;
  };

  Inputs split(const Tensor& rows) const {
    const int64_t q = heads * head_dim, kv = kv_heads * head_dim;
    return {split_last(slice(rows, 1, 0, q), head_dim), split_last(slice(rows, 1, q, kv), head_dim),
            split_last(slice(rows, 1, q + kv, kv), head_dim)};
  }
  // Writable for difference quotients; that an op leaves them alone is checked all the same.
  Inputs inputs(Trial& run) const {
    if (fused) return split(writable(run.input("qkv", fused_shape())));
    return {writable(run.input("q", q_shape())), writable(run.input("k", kv_shape())),
            writable(run.input("v", kv_shape()))};
  }
  // Tensors of the shapes of q, k and v to write to.
  Inputs gradients(Trial& run) const {
    if (fused) return split(run.blank(fused_shape()));
    return {run.blank(q_shape()), run.blank(kv_shape()), run.blank(kv_shape())};
  }

  // As large as the scores. Writable like the inputs.
  Tensor bias(Trial& run) const {
    return biased ? writable(run.input("bias", bias_shape())) : Tensor{};
  }

  ops::Attention forward(Trial& run, const Inputs& in) const {
    return {{.q = in.q,
             .k = in.k,
             .v = in.v,
             .sequences = sequences,
             .scale = scale(),
             .mask = mask(run),
             .dropout = dropout(run),
             .bias = bias(run)},
            run.blank(q_shape()),
            run.blank(lse_shape(), Element::Sum)};
  }
  static ops::AttentionBackward backward(const ops::Attention& f, const ConstTensor& dout,
                                         const Inputs& d) {
    return {f, dout, f.out, f.lse, d.q, d.k, d.v};
  }
};

}  // namespace bev::test
