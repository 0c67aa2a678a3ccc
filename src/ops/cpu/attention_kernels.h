// Attention tile by tile with a running softmax (Dao et al., "FlashAttention", 2022): no matrix of
// length x length exists. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/attention_tile.h"
#include "ops/cpu/kernels.h"

namespace bev::cpu {

// The forward of one query tile. Scores lie transposed, [key][query]: the softmax then runs down the
// columns, and no operand but q needs a transposition.
template <class V, class T>
class ForwardTile {
 public:
  ForwardTile(const AttentionForward<T>& a, int64_t head, int64_t query_begin, float* workspace)
      : a_(a),
        head_(head),
        kv_head_(head / (a.size.heads / a.size.kv_heads)),
        query_begin_(query_begin),
        queries_(at_most(kQueryTile, a.size.queries - query_begin)),
        vectors_((queries_ + V::kWidth - 1) / V::kWidth),
        padded_(padded_to<V>(a.size.head_dim)),
        view_(a.mask, query_begin, queries_, a.size.keys) {
    TileMemory<V> memory(workspace);
    q_columns_ = memory.take(padded_ * kQueryTile);
    k_ = memory.take(kKeyTile * padded_);
    v_ = memory.take(kKeyTile * padded_);
    scores_ = memory.take(kKeyTile * kQueryTile);
    out_ = memory.take(kQueryTile * padded_);
  }

  void run() {
    const T* q = a_.q.data + query_begin_ * a_.q.token_stride + head_ * a_.q.head_stride;
    pack_rows<V>(q, a_.q.token_stride, queries_, a_.size.head_dim, a_.size.scale, k_);
    transpose_rows<V, kQueryTile>(k_, queries_, padded_, q_columns_);
    for (int64_t i = 0; i < kQueryTile; ++i) {
      max_[i] = -__builtin_inff();
      sum_[i] = 0;
      const bool drops = a_.dropout.rows != nullptr && i < queries_;
      const auto row = drops ? static_cast<uint64_t>(a_.dropout.rows[query_begin_ + i]) : 0;
      row_low_[i] = static_cast<uint32_t>(row);
      row_high_[i] = static_cast<uint32_t>(row >> 32);
    }
    for (int64_t key = view_.first_key / kKeyTile * kKeyTile; key < view_.last_key;
         key += kKeyTile) {
      add_keys(key, at_most(kKeyTile, a_.size.keys - key));
    }
    write();
  }

 private:
  static int64_t at_most(int64_t limit, int64_t x) { return x < limit ? x : limit; }

  void add_keys(int64_t key_begin, int64_t keys) {
    const TileView<V> view(a_.mask, view_, queries_, key_begin, keys);
    if (view.is_empty) return;
    const int64_t head_dim = a_.size.head_dim;
    const T* k = a_.k.data + key_begin * a_.k.token_stride + kv_head_ * a_.k.head_stride;
    const T* v = a_.v.data + key_begin * a_.v.token_stride + kv_head_ * a_.v.head_stride;
    pack_rows<V>(k, a_.k.token_stride, keys, head_dim, 1.0f, k_);
    pack_rows<V>(v, a_.v.token_stride, keys, head_dim, 1.0f, v_);
    tile_product<V, false>({.a = k_, .a_row = padded_, .a_step = 1, .b = q_columns_,
                            .b_step = kQueryTile, .c = scores_, .c_row = kQueryTile},
                           keys, vectors_, [&](int64_t begin) -> TileRange {
                             if (view.is_full) return {0, vectors_, 0, head_dim};
                             const TileSpan seen = view.queries_of_block[begin / view.kRows];
                             return {seen.from / V::kWidth, (seen.to + V::kWidth - 1) / V::kWidth,
                                     0, head_dim};
                           });
    for (int64_t vector = 0; vector < vectors_; ++vector) {
      if (view.is_full) {
        soften<false>(view, vector, {0, keys});
      } else {
        soften<true>(view, vector, view.keys_of(vector * V::kWidth, (vector + 1) * V::kWidth));
      }
    }
    if (a_.dropout.rows != nullptr) drop(key_begin, keys);
    const TileProduct values{.a = scores_, .a_row = 1, .a_step = kQueryTile, .b = v_,
                             .b_step = padded_, .c = out_, .c_row = padded_};
    const auto ranges = [&](int64_t begin) -> TileRange {
      if (view.is_full) return {0, padded_ / V::kWidth, 0, keys};
      const TileSpan seen = view.keys_of_block[begin / view.kRows];
      return {0, padded_ / V::kWidth, seen.from, seen.to};
    };
    if (is_first_) {
      tile_product<V, false>(values, queries_, padded_ / V::kWidth, ranges);
      is_first_ = false;
    } else {
      rescale();
      tile_product<V, true>(values, queries_, padded_ / V::kWidth, ranges);
    }
  }

  // Scores of one vector of queries become exp(score - max); max, sum and the factor of what was
  // summed before follow. Keys outside `seen` get 0.
  template <bool kMasked>
  void soften(const TileView<V>& view, int64_t vector, TileSpan seen) {
    const int64_t i = vector * V::kWidth;
    float* column = scores_ + i;
    if constexpr (kMasked) {
      for (int64_t j = 0; j < view.keys; ++j) {
        if (j < seen.from || j >= seen.to) V::zero().store(column + j * kQueryTile);
      }
    }
    const V old_max = V::load(max_ + i);
    V largest[2] = {old_max, old_max};
    for (int64_t j = seen.from; j < seen.to; ++j) {
      float* at = column + j * kQueryTile;
      if constexpr (kMasked) shown(view, j, i, V::load(at)).store(at);
      largest[j % 2] = max(V::load(at), largest[j % 2]);
    }
    const V new_max = max(largest[0], largest[1]);
    // A query that has seen no key yet: any finite shift serves, its exponentials are 0.
    const V shift = select(V::broadcast(-__FLT_MAX__) < new_max, new_max, V::zero());
    V total = V::zero();
    for (int64_t j = seen.from; j < seen.to; ++j) {
      const V p = exp(V::load(column + j * kQueryTile) - shift);
      total = total + p;
      p.store(column + j * kQueryTile);
    }
    const V factor = exp(old_max - shift);
    factor.store(factor_ + i);
    new_max.store(max_ + i);
    fma(V::load(sum_ + i), factor, total).store(sum_ + i);
  }

  // The scores of key j for the queries from i on, -infinity where the mask hides it.
  static V shown(const TileView<V>& view, int64_t j, int64_t i, V scores) {
    const V hidden = V::broadcast(-__builtin_inff());
    if (view.hides_keys && view.visible[j] == 0) return hidden;
    const V key = V::broadcast(static_cast<float>(j));
    const V before_end = select(key < V::load(view.end + i), scores, hidden);
    return select(key < V::load(view.begin + i), hidden, before_end);
  }

  void drop(int64_t key_begin, int64_t keys) {
    using W = WordVecOf<V>;
    const TileDropout& d = a_.dropout;
    const W threshold = W::broadcast(d.threshold);
    const W head = W::broadcast(static_cast<uint32_t>(d.head_begin + head_));
    const V scale = V::broadcast(d.scale);
    for (int64_t j = 0; j < keys; j += 4) {
      const W block = W::broadcast(static_cast<uint32_t>((key_begin + j) / 4));
      for (int64_t i = 0; i < vectors_ * V::kWidth; i += V::kWidth) {
        const auto draws =
            philox_lanes(d.key, block, head, W::load(row_low_ + i), W::load(row_high_ + i));
        for (int64_t word = 0; word < 4 && j + word < keys; ++word) {
          float* p = scores_ + (j + word) * kQueryTile + i;
          select(at_least(draws.word[word], threshold), V::load(p) * scale, V::zero()).store(p);
        }
      }
    }
  }

  void rescale() {
    for (int64_t i = 0; i < queries_; ++i) {
      if (factor_[i] == 1.0f) continue;
      const V factor = V::broadcast(factor_[i]);
      float* row = out_ + i * padded_;
      for (int64_t d = 0; d < padded_; d += V::kWidth) (V::load(row + d) * factor).store(row + d);
    }
  }

  void write() {
    for (int64_t i = 0; i < queries_; ++i) {
      T* row = a_.out.data + (query_begin_ + i) * a_.out.token_stride + head_ * a_.out.head_stride;
      float* lse = a_.lse + (query_begin_ + i) * a_.lse_stride + head_;
      if (sum_[i] == 0) {
        each_vector<V>(a_.size.head_dim, [&](int64_t d, auto lanes) {
          lanes.store(V::zero(), row + d);
        });
        *lse = -__builtin_inff();
        continue;
      }
      const V inverse = V::broadcast(1.0f / sum_[i]);
      each_vector<V>(a_.size.head_dim, [&](int64_t d, auto lanes) {
        lanes.store(V::load(out_ + i * padded_ + d) * inverse, row + d);
      });
      *lse = static_cast<float>(static_cast<double>(max_[i]) +
                                __builtin_log(static_cast<double>(sum_[i])));
    }
  }

  const AttentionForward<T>& a_;
  const int64_t head_, kv_head_, query_begin_, queries_, vectors_, padded_;
  const QueryView<V> view_;
  bool is_first_ = true;
  float *q_columns_, *k_, *v_, *scores_, *out_;
  alignas(64) float max_[kQueryTile], sum_[kQueryTile], factor_[kQueryTile];
  alignas(64) uint32_t row_low_[kQueryTile], row_high_[kQueryTile];
};

template <class V, class T>
void attention_forward(const AttentionForward<T>& a, int64_t head, int64_t query_begin,
                       float* workspace) {
  ForwardTile<V, T>(a, head, query_begin, workspace).run();
}

}  // namespace bev::cpu
