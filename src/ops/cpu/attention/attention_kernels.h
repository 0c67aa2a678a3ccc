// Attention tile by tile with a running softmax (Dao et al., "FlashAttention", 2022): no matrix of
// length x length exists. For kernel files (see simd.h).
#pragma once

#include "ops/cpu/attention/attention_tile.h"
#include "ops/cpu/kernels/kernels.h"

namespace bev::cpu {

// One query tile of the forward while the key tiles pass by. Scores lie transposed, [key][query]:
// the softmax then runs down the columns, and no operand but q needs a transposition.
template <class V, class T>
class ForwardTile {
 public:
  // `rows` is scratch of a tile of rows.
  void begin(const AttentionForward<T>& a, int64_t head, int64_t query_begin, TileMemory& memory,
             float* rows) {
    a_ = &a;
    head_ = head;
    query_begin_ = query_begin;
    queries_ = at_most(kQueryTile, a.size.queries - query_begin);
    vectors_ = (queries_ + V::kWidth - 1) / V::kWidth;
    padded_ = padded_to<V>(a.size.head_dim);
    seen_ = QueryView<V>(a.mask, query_begin, queries_, a.size.keys);
    q_columns_ = take<V>(memory, padded_ * kQueryTile);
    out_ = take<V>(memory, kQueryTile * padded_);
    is_first_ = true;
    const T* q = a.q.data + query_begin * a.q.token_stride + head * a.q.head_stride;
    pack_rows<V>(q, a.q.token_stride, queries_, a.size.head_dim, a.size.scale, rows);
    transpose_rows<V, kQueryTile>(rows, queries_, padded_, q_columns_);
    for (int64_t i = 0; i < kQueryTile; ++i) {
      max_[i] = -__builtin_inff();
      sum_[i] = 0;
      const bool drops = a.dropout.rows != nullptr && i < queries_;
      const auto row = drops ? static_cast<uint64_t>(a.dropout.rows[query_begin + i]) : 0;
      row_low_[i] = static_cast<uint32_t>(row);
      row_high_[i] = static_cast<uint32_t>(row >> 32);
    }
  }

  const QueryView<V>& seen() const { return seen_; }

  TileView<V> view(int64_t key_begin, int64_t keys) const {
    return TileView<V>(seen_, queries_, key_begin, keys);
  }

  // Adds the keys of a tile that is not empty: k and v [keys, padded], scores and bias_rows scratch
  // of a tile each.
  void add_keys(const TileView<V>& view, int64_t key_begin, const float* k, const float* v,
                float* scores, float* bias_rows) {
    const int64_t keys = view.keys, head_dim = a_->size.head_dim;
    const TileMatmul products{.a = k,
                              .a_row = padded_,
                              .a_step = 1,
                              .b = q_columns_,
                              .b_step = kQueryTile,
                              .c = scores,
                              .c_row = kQueryTile};
    const auto queries_seen = [&](int64_t row) -> TileRange {
      if (view.is_full) return {0, vectors_, 0, head_dim};
      const TileSpan seen = view.queries_of_block[row / view.kRows];
      return {seen.from / V::kWidth, (seen.to + V::kWidth - 1) / V::kWidth, 0, head_dim};
    };
    if (a_->bias.data != nullptr) {
      pack_rows<V>(a_->bias.at(head_, query_begin_, key_begin), a_->bias.query_stride, queries_,
                   keys, 1.0f, bias_rows);
      transpose_rows<V, kQueryTile>(bias_rows, queries_, padded_to<V>(keys), scores);
      tile_matmul<V, true>(products, keys, vectors_, queries_seen);
    } else {
      tile_matmul<V, false>(products, keys, vectors_, queries_seen);
    }
    for (int64_t vector = 0; vector < vectors_; ++vector) {
      if (view.is_full) {
        soften<false>(view, vector, {0, keys}, scores);
      } else {
        soften<true>(view, vector, view.keys_of(vector * V::kWidth, (vector + 1) * V::kWidth),
                     scores);
      }
    }
    if (a_->dropout.rows != nullptr) drop(key_begin, keys, scores);
    const TileMatmul values{.a = scores,
                            .a_row = 1,
                            .a_step = kQueryTile,
                            .b = v,
                            .b_step = padded_,
                            .c = out_,
                            .c_row = padded_};
    const auto ranges = [&](int64_t row) -> TileRange {
      if (view.is_full) return {0, padded_ / V::kWidth, 0, keys};
      const TileSpan seen = view.keys_of_block[row / view.kRows];
      return {0, padded_ / V::kWidth, seen.from, seen.to};
    };
    if (is_first_) {
      tile_matmul<V, false>(values, queries_, padded_ / V::kWidth, ranges);
      is_first_ = false;
    } else {
      rescale();
      tile_matmul<V, true>(values, queries_, padded_ / V::kWidth, ranges);
    }
  }

  void write() const {
    for (int64_t i = 0; i < queries_; ++i) {
      T* row =
          a_->out.data + (query_begin_ + i) * a_->out.token_stride + head_ * a_->out.head_stride;
      float* lse = a_->lse + head_ * a_->lse_stride + query_begin_ + i;
      if (sum_[i] == 0) {
        each_vector<V>(a_->size.head_dim,
                       [&](int64_t d, auto lanes) { lanes.store(V::zero(), row + d); });
        *lse = -__builtin_inff();
        continue;
      }
      const V inverse = V::broadcast(1.0f / sum_[i]);
      each_vector<V>(a_->size.head_dim, [&](int64_t d, auto lanes) {
        lanes.store(V::load(out_ + i * padded_ + d) * inverse, row + d);
      });
      *lse = static_cast<float>(static_cast<double>(max_[i]) +
                                __builtin_log(static_cast<double>(sum_[i])));
    }
  }

 private:
  static int64_t at_most(int64_t limit, int64_t x) { return x < limit ? x : limit; }

  // Scores of one vector of queries become exp(score - max); max, sum and the factor of what was
  // summed before follow. Keys outside `seen` get 0.
  template <bool kMasked>
  void soften(const TileView<V>& view, int64_t vector, TileSpan seen, float* scores) {
    const int64_t i = vector * V::kWidth;
    float* column = scores + i;
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
    const V key = V::broadcast(static_cast<float>(j));
    const V before_end = select(key < V::load(view.end + i), scores, hidden);
    return select(key < V::load(view.begin + i), hidden, before_end);
  }

  void drop(int64_t key_begin, int64_t keys, float* scores) const {
    using W = WordVecOf<V>;
    constexpr int kBatch = 2;
    static_assert(kQueryTile % (kBatch * V::kWidth) == 0);
    const TileDropout& d = a_->dropout;
    const W threshold = W::broadcast(d.threshold << 16);
    const W head = W::broadcast(static_cast<uint32_t>(d.head_begin + head_));
    const V scale = V::broadcast(d.scale);
    static_assert(kKeyTile % ops::kKeysPerBlock == 0);
    for (int64_t j = 0; j < keys; j += ops::kKeysPerBlock) {
      const W block = W::broadcast(static_cast<uint32_t>((key_begin + j) / ops::kKeysPerBlock));
      for (int64_t i = 0; i < vectors_ * V::kWidth; i += kBatch * V::kWidth) {
        PhiloxLanes<W> lanes[kBatch];
        for (int b = 0; b < kBatch; ++b) {
          const int64_t q = i + b * V::kWidth;
          lanes[b] = {{block, head, W::load(row_low_ + q), W::load(row_high_ + q)}};
        }
        draw<ops::kAttentionRounds>(d.key, lanes);
        for (int64_t key = 0; key < ops::kKeysPerBlock && j + key < keys; ++key) {
          for (int b = 0; b < kBatch; ++b) {
            float* p = scores + (j + key) * kQueryTile + i + b * V::kWidth;
            const W word = lanes[b].word[key / 2];
            // The draw at the top of a word; what lies below it does not count.
            const auto kept = at_least(key % 2 == 0 ? word << 16 : word, threshold);
            select(kept, V::load(p) * scale, V::zero()).store(p);
          }
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

  const AttentionForward<T>* a_ = nullptr;
  int64_t head_ = 0, query_begin_ = 0, queries_ = 0, vectors_ = 0, padded_ = 0;
  QueryView<V> seen_;
  bool is_first_ = true;
  float *q_columns_ = nullptr, *out_ = nullptr;
  alignas(64) float max_[kQueryTile], sum_[kQueryTile], factor_[kQueryTile];
  alignas(64) uint32_t row_low_[kQueryTile], row_high_[kQueryTile];
};

template <class V, class T>
void attention_forward(const AttentionForward<T>& a, int64_t head, int64_t query_begin,
                       int64_t tiles, TileMemory memory) {
  const int64_t padded = padded_to<V>(a.size.head_dim);
  const int64_t kv_head = head / (a.size.heads / a.size.kv_heads);
  float* k_rows = take<V>(memory, kKeyTile * padded);
  float* v_rows = take<V>(memory, kKeyTile * padded);
  float* scores = take<V>(memory, kKeyTile * kQueryTile);
  float* bias_rows = take<V>(memory, kQueryTile * kKeyTile);
  ForwardTile<V, T> tile[kQueryTilesPerTask];
  int64_t first_key = a.size.keys, last_key = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    tile[t].begin(a, head, query_begin + t * kQueryTile, memory, k_rows);
    const QueryView<V>& seen = tile[t].seen();
    first_key = seen.first_key < first_key ? seen.first_key : first_key;
    last_key = seen.last_key > last_key ? seen.last_key : last_key;
  }
  for (int64_t key = first_key / kKeyTile * kKeyTile; key < last_key; key += kKeyTile) {
    const int64_t keys = a.size.keys - key < kKeyTile ? a.size.keys - key : kKeyTile;
    bool is_packed = false;
    for (int64_t t = 0; t < tiles; ++t) {
      const TileView<V> view = tile[t].view(key, keys);
      if (view.is_empty) continue;
      if (!is_packed) {
        const T* k = a.k.data + key * a.k.token_stride + kv_head * a.k.head_stride;
        const T* v = a.v.data + key * a.v.token_stride + kv_head * a.v.head_stride;
        pack_rows<V>(k, a.k.token_stride, keys, a.size.head_dim, 1.0f, k_rows);
        pack_rows<V>(v, a.v.token_stride, keys, a.size.head_dim, 1.0f, v_rows);
        is_packed = true;
      }
      tile[t].add_keys(view, key, k_rows, v_rows, scores, bias_rows);
    }
  }
  for (int64_t t = 0; t < tiles; ++t) tile[t].write();
}

}  // namespace bev::cpu
