// The backward of attention tile by tile; the formulas stand at ops::AttentionBackward. For kernel
// files (see simd.h).
#pragma once

#include "ops/cpu/attention/attention_tile.h"
#include "ops/cpu/kernels/kernels.h"

namespace bev::cpu {

// The tiles of a pair of one query tile and one key tile. Scores lie as [query][key], so that the
// keys and values are the transposed operands: they change seldom when keys are the outer loop.
template <class V, class T>
class GradientTile {
 public:
  GradientTile(const AttentionGradient<T>& a, TileMemory memory)
      : a_(a), padded_(padded_to<V>(a.size.head_dim)), columns_(padded_ / V::kWidth) {
    q_ = take<V>(memory, kQueryTile * padded_);
    dout_ = take<V>(memory, kQueryTile * padded_);
    dq_ = take<V>(memory, kQueryTile * padded_);
    k_ = take<V>(memory, kKeyTile * padded_);
    k_columns_ = take<V>(memory, padded_ * kKeyTile);
    v_columns_ = take<V>(memory, padded_ * kKeyTile);
    dk_ = take<V>(memory, kKeyTile * padded_);
    dv_ = take<V>(memory, kKeyTile * padded_);
    p_ = take<V>(memory, kQueryTile * kKeyTile);
    ds_ = take<V>(memory, kQueryTile * kKeyTile);
  }

  // dk and dv of one key tile; add_dq: what the tile contributes to dq goes there as well.
  void run_keys(int64_t kv_head, int64_t key_begin, bool add_dq) {
    load_keys(kv_head, key_begin);
    const int64_t group = a_.size.heads / a_.size.kv_heads;
    clear(dk_, keys_);
    clear(dv_, keys_);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t query = 0; query < a_.size.queries; query += kQueryTile) {
        const int64_t queries = at_most(kQueryTile, a_.size.queries - query);
        const QueryView<V> seen(a_.mask, query, queries, a_.size.keys);
        const TileView<V> view(seen, queries, key_begin, keys_);
        if (!view.is_empty) {
          load_queries(head, query, queries);
          make_ds(view);
          add_keys(view);
          if (a_.dbias.data != nullptr) add_bias_gradient(view);
        }
        if (add_dq) put_dq(view, seen, head, query);
      }
    }
    write(dk_, a_.dk, key_begin, keys_, kv_head);
    write(dv_, a_.dv, key_begin, keys_, kv_head);
  }

  // dq of one query tile.
  void run_queries(int64_t head, int64_t query_begin) {
    const int64_t queries = at_most(kQueryTile, a_.size.queries - query_begin);
    const QueryView<V> seen(a_.mask, query_begin, queries, a_.size.keys);
    load_queries(head, query_begin, queries);
    clear(dq_, queries);
    for (int64_t key = seen.first_key / kKeyTile * kKeyTile; key < seen.last_key; key += kKeyTile) {
      const TileView<V> view(seen, queries, key, at_most(kKeyTile, a_.size.keys - key));
      if (view.is_empty) continue;
      load_keys(head / (a_.size.heads / a_.size.kv_heads), key);
      make_ds(view);
      multiply_dq(view, starts_dq(view, seen), dq_, padded_);
    }
    write(dq_, a_.dq, query_begin, queries, head);
  }

 private:
  static int64_t at_most(int64_t limit, int64_t x) { return x < limit ? x : limit; }

  template <class U>
  static U* row_of(const HeadRows<U>& t, int64_t token, int64_t head) {
    return t.data + token * t.token_stride + head * t.head_stride;
  }

  void clear(float* tile, int64_t rows) const {
    for (int64_t i = 0; i < rows * padded_; i += V::kWidth) V::zero().store(tile + i);
  }

  void write(const float* tile, const HeadRows<T>& to, int64_t begin, int64_t count, int64_t head) {
    for (int64_t i = 0; i < count; ++i) {
      T* row = row_of(to, begin + i, head);
      each_vector<V>(a_.size.head_dim, [&](int64_t d, auto lanes) {
        lanes.store(V::load(tile + i * padded_ + d), row + d);
      });
    }
  }

  // k_ gets the factor of dq = scale * dS k; k_columns_ does not, the scores take it from q.
  void load_keys(int64_t kv_head, int64_t key_begin) {
    const int64_t head_dim = a_.size.head_dim;
    key_begin_ = key_begin;
    keys_ = at_most(kKeyTile, a_.size.keys - key_begin);
    pack_rows<V>(row_of(a_.v, key_begin, kv_head), a_.v.token_stride, keys_, head_dim, 1.0f, k_);
    transpose_rows<V, kKeyTile>(k_, keys_, padded_, v_columns_);
    pack_rows<V>(row_of(a_.k, key_begin, kv_head), a_.k.token_stride, keys_, head_dim, 1.0f, k_);
    transpose_rows<V, kKeyTile>(k_, keys_, padded_, k_columns_);
    const V scale = V::broadcast(a_.size.scale);
    for (int64_t i = 0; i < keys_ * padded_; i += V::kWidth) {
      (V::load(k_ + i) * scale).store(k_ + i);
    }
  }

  // q with the factor of the scores, which dk = scale * dS^T q needs as well.
  void load_queries(int64_t head, int64_t query_begin, int64_t queries) {
    const int64_t head_dim = a_.size.head_dim;
    head_ = head;
    query_begin_ = query_begin;
    pack_rows<V>(row_of(a_.q, query_begin, head), a_.q.token_stride, queries, head_dim,
                 a_.size.scale, q_);
    pack_rows<V>(row_of(a_.dout, query_begin, head), a_.dout.token_stride, queries, head_dim, 1.0f,
                 dout_);
    const T* out = row_of(a_.out, query_begin, head);
    prefetch_rows<V>(out, a_.out.token_stride, 0, queries, head_dim);
    for (int64_t i = 0; i < queries; ++i, out += a_.out.token_stride) {
      V product = V::zero();
      each_vector<V>(head_dim, [&](int64_t d, auto lanes) {
        product = fma(V::load(dout_ + i * padded_ + d), lanes.load(out + d), product);
      });
      delta_[i] = sum(product);
    }
  }

  // p_ = bias
  void load_bias(const TileView<V>& view) {
    for (int64_t i = 0; i < view.queries; ++i) {
      const T* row = a_.bias.at(head_, query_begin_ + i, key_begin_);
      each_vector<V>(view.keys, [&](int64_t j, auto lanes) {
        lanes.load(row + j).store(p_ + i * kKeyTile + j);
      });
    }
  }

  void add_bias_gradient(const TileView<V>& view) {
    for (int64_t i = 0; i < view.queries; ++i) {
      float* row = a_.dbias.at(head_, query_begin_ + i, key_begin_);
      each_vector<V>(view.keys, [&](int64_t j, auto lanes) {
        lanes.store(lanes.load(row + j) + V::load(ds_ + i * kKeyTile + j), row + j);
      });
    }
  }

  // p_ = dropout(P), ds_ = dS; zero where a query sees no key.
  void make_ds(const TileView<V>& view) {
    const int64_t key_vectors = (view.keys + V::kWidth - 1) / V::kWidth;
    const auto ranges = [&](int64_t begin) -> TileRange {
      if (view.is_full) return {0, key_vectors, 0, a_.size.head_dim};
      const TileSpan seen = view.keys_of_block[begin / view.kRows];
      return {seen.from / V::kWidth, (seen.to + V::kWidth - 1) / V::kWidth, 0, a_.size.head_dim};
    };
    const TileMatmul scores{.a = q_,
                            .a_row = padded_,
                            .a_step = 1,
                            .b = k_columns_,
                            .b_step = kKeyTile,
                            .c = p_,
                            .c_row = kKeyTile};
    if (a_.bias.data != nullptr) {
      load_bias(view);
      tile_matmul<V, true>(scores, view.queries, key_vectors, ranges);
    } else {
      tile_matmul<V, false>(scores, view.queries, key_vectors, ranges);
    }
    tile_matmul<V, false>({.a = dout_,
                           .a_row = padded_,
                           .a_step = 1,
                           .b = v_columns_,
                           .b_step = kKeyTile,
                           .c = ds_,
                           .c_row = kKeyTile},
                          view.queries, key_vectors, ranges);
    for (int64_t i = 0; i < view.queries; ++i) {
      const V lse = V::broadcast(a_.lse[head_ * a_.lse_stride + query_begin_ + i]);
      if (a_.dropout.rows != nullptr) {
        if (i % kDrawnRows == 0) draw_rows(i, view.queries);
        make_row<true>(view, i, key_vectors, lse);
      } else {
        make_row<false>(view, i, key_vectors, lse);
      }
    }
  }

  // The draws of the keys of this tile for the queries [i, i + kDrawnRows) become draws_.
  void draw_rows(int64_t i, int64_t queries) {
    using W = WordVecOf<V>;
    constexpr int64_t kRowBlocks = kKeyTile / ops::kKeysPerBlock;
    static_assert(kDrawnRows * kRowBlocks == kBatch * V::kWidth && V::kWidth <= 2 * kRowBlocks);
    const TileDropout& d = a_.dropout;
    uint32_t order[V::kWidth];
    for (uint32_t lane = 0; lane < V::kWidth; ++lane) order[lane] = drawn_block<V>(lane);
    uint32_t blocks[V::kWidth];
    for (uint32_t lane = 0; lane < V::kWidth; ++lane) blocks[lane] = order[lane] % kRowBlocks;
    // A vector has blocks of one query, or of two: one half each.
    const auto is_second = at_least(W::load(order), W::broadcast(kRowBlocks));
    const auto row_of_halves = [&](uint32_t first, uint32_t second) {
      return as_words(
          select(is_second, as_floats(W::broadcast(second)), as_floats(W::broadcast(first))));
    };
    const W head = W::broadcast(static_cast<uint32_t>(d.head_begin + head_));
    PhiloxLanes<W> lanes[kBatch];
    for (int64_t b = 0; b < kBatch; ++b) {
      const int64_t drawn = b * V::kWidth;  // blocks before this vector
      const int64_t query = at_most(i + drawn / kRowBlocks, queries - 1);
      const auto first = static_cast<uint64_t>(d.rows[query_begin_ + query]);
      const auto second =
          static_cast<uint64_t>(d.rows[query_begin_ + at_most(query + 1, queries - 1)]);
      const auto block =
          static_cast<uint32_t>(key_begin_ / ops::kKeysPerBlock + drawn % kRowBlocks);
      lanes[b] = {
          {W::load(blocks) + W::broadcast(block), head,
           row_of_halves(static_cast<uint32_t>(first), static_cast<uint32_t>(second)),
           row_of_halves(static_cast<uint32_t>(first >> 32), static_cast<uint32_t>(second >> 32))}};
    }
    draw<ops::kAttentionRounds>(d.key, lanes);
    uint32_t* to = draws_;
    for (PhiloxLanes<W>& l : lanes) {
      put_in_order<V>(l);
      for (const W& word : l.word) {
        word.store(to);
        to += V::kWidth;
      }
    }
  }

  template <bool kDrops>
  void make_row(const TileView<V>& view, int64_t i, int64_t key_vectors, V lse) {
    using W = WordVecOf<V>;
    const V delta = V::broadcast(delta_[i]);
    const TileDropout& d = a_.dropout;
    for (int64_t vector = 0; vector < key_vectors; ++vector) {
      const int64_t j = vector * V::kWidth;
      float* p_at = p_ + i * kKeyTile + j;
      float* ds_at = ds_ + i * kKeyTile + j;
      V p, dp;
      if (!view.is_full && (j >= static_cast<int64_t>(view.end[i]) ||
                            j + V::kWidth <= static_cast<int64_t>(view.begin[i]))) {
        V::zero().store(p_at);
        V::zero().store(ds_at);
        continue;
      }
      if (view.is_full) {
        p = exp(V::load(p_at) - lse);
        dp = V::load(ds_at);
      } else {
        const V key = lane_numbers<V>() + V::broadcast(static_cast<float>(j));
        // Scores outside the computed range hold anything; they are selected away.
        p = select(key < V::broadcast(view.end[i]), exp(V::load(p_at) - lse), V::zero());
        p = select(key < V::broadcast(view.begin[i]), V::zero(), p);
        dp = select(V::zero() < p, V::load(ds_at), V::zero());
      }
      V kept_p = p;
      if constexpr (kDrops) {
        const W draws = W::load_halves(draws_ + (i % kDrawnRows * kKeyTile + j) / 2);
        const auto kept = at_least(draws, W::broadcast(d.threshold));
        const V scale = V::broadcast(d.scale);
        kept_p = select(kept, p * scale, V::zero());
        dp = select(kept, dp * scale, V::zero());
      }
      kept_p.store(p_at);
      (p * (dp - delta)).store(ds_at);
    }
  }

  // dv += dropout(P)^T dout,  dk += dS^T (scale q)
  void add_keys(const TileView<V>& view) {
    const auto ranges = [&](int64_t begin) -> TileRange {
      if (view.is_full) return {0, columns_, 0, view.queries};
      const TileSpan seen = view.queries_of_block[begin / view.kRows];
      return {0, columns_, seen.from, seen.to};
    };
    tile_matmul<V, true>({.a = p_,
                          .a_row = 1,
                          .a_step = kKeyTile,
                          .b = dout_,
                          .b_step = padded_,
                          .c = dv_,
                          .c_row = padded_},
                         view.keys, columns_, ranges);
    tile_matmul<V, true>({.a = ds_,
                          .a_row = 1,
                          .a_step = kKeyTile,
                          .b = q_,
                          .b_step = padded_,
                          .c = dk_,
                          .c_row = padded_},
                         view.keys, columns_, ranges);
  }

  // Whether a tile is the first that its queries see. The same rule for either order of the loops,
  // so that both give the same bits.
  bool starts_dq(const TileView<V>& view, const QueryView<V>& seen) const {
    return key_begin_ <= seen.first_key && seen.first_key < key_begin_ + view.keys;
  }

  // to = or += dS (scale k)
  void multiply_dq(const TileView<V>& view, bool starts, float* to, int64_t stride) {
    const auto ranges = [&](int64_t begin) -> TileRange {
      if (view.is_full) return {0, columns_, 0, view.keys};
      const TileSpan seen = view.keys_of_block[begin / view.kRows];
      return {0, columns_, seen.from, seen.to};
    };
    const TileMatmul product{.a = ds_,
                             .a_row = kKeyTile,
                             .a_step = 1,
                             .b = k_,
                             .b_step = padded_,
                             .c = to,
                             .c_row = stride};
    if (starts) {
      tile_matmul<V, false>(product, view.queries, columns_, ranges);
    } else {
      tile_matmul<V, true>(product, view.queries, columns_, ranges);
    }
  }

  // Adds the contribution of this tile to the dq of its queries, or starts it.
  void put_dq(const TileView<V>& view, const QueryView<V>& seen, int64_t head, int64_t query) {
    const bool sees_nothing = seen.last_key == 0;
    const bool starts = sees_nothing ? key_begin_ == 0 : starts_dq(view, seen);
    if (view.is_empty && !starts) return;
    T* dq = row_of(a_.dq, query, head);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (!view.is_empty && a_.size.head_dim == padded_) {
        multiply_dq(view, starts, dq, a_.dq.token_stride);
        return;
      }
    }
    if (view.is_empty) {
      clear(dq_, view.queries);
    } else {
      multiply_dq(view, true, dq_, padded_);
    }
    for (int64_t i = 0; i < view.queries; ++i) {
      T* row = dq + i * a_.dq.token_stride;
      each_vector<V>(a_.size.head_dim, [&](int64_t d, auto lanes) {
        const V tile = V::load(dq_ + i * padded_ + d);
        lanes.store(starts ? tile : lanes.load(row + d) + tile, row + d);
      });
    }
  }

  const AttentionGradient<T>& a_;
  const int64_t padded_, columns_;
  int64_t head_ = 0, query_begin_ = 0, key_begin_ = 0, keys_ = 0;
  float *q_, *dout_, *dq_, *k_, *k_columns_, *v_columns_, *dk_, *dv_, *p_, *ds_;
  float delta_[kQueryTile];
  static constexpr int64_t kBatch = 2;  // vectors of blocks that are drawn together
  static constexpr int64_t kDrawnRows = kBatch * V::kWidth * ops::kKeysPerBlock / kKeyTile;
  alignas(64) uint32_t draws_[kDrawnRows * kKeyTile / 2];  // [query][key], two in a word
};

template <class V, class T>
void attention_backward_queries(const AttentionGradient<T>& a, int64_t head, int64_t query_begin,
                                TileMemory memory) {
  GradientTile<V, T>(a, memory).run_queries(head, query_begin);
}

template <class V, class T>
void attention_backward_keys(const AttentionGradient<T>& a, int64_t kv_head, int64_t key_begin,
                             bool add_dq, TileMemory memory) {
  GradientTile<V, T>(a, memory).run_keys(kv_head, key_begin, add_dq);
}

}  // namespace bev::cpu
