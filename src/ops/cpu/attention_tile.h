// What the attention kernels share: packed tiles, and which keys of a tile a query sees. For kernel
// files (see simd.h).
#pragma once

#include "ops/cpu/attention_problem.h"
#include "ops/cpu/dropout_kernels.h"
#include "ops/cpu/lanes.h"
#include "ops/cpu/tile_product.h"

namespace bev::cpu {

template <class V>
int64_t padded_to(int64_t count) {
  return (count + V::kWidth - 1) / V::kWidth * V::kWidth;
}

// Hands out the workspace of a task piece by piece.
template <class V>
class TileMemory {
 public:
  explicit TileMemory(float* begin) : next_(begin) {}
  float* take(int64_t floats) {
    float* piece = next_;
    next_ += (floats + 15) / 16 * 16;
    return piece;
  }

 private:
  float* next_;
};

// to[i][:] = factor * from[i * stride][:], zero from head_dim up to the padded width. Rows from
// `count` up to a whole vector of rows are zero.
template <class V, class T>
void pack_rows(const T* from, int64_t stride, int64_t count, int64_t head_dim, float factor,
               float* to) {
  const int64_t padded = padded_to<V>(head_dim);
  const V scale = V::broadcast(factor);
  for (int64_t i = 0; i < count; ++i) {
    each_vector<V>(head_dim, [&](int64_t d, auto lanes) {
      (lanes.load(from + i * stride + d) * scale).store(to + i * padded + d);
    });
  }
  for (int64_t i = count * padded; i < padded_to<V>(count) * padded; i += V::kWidth) {
    V::zero().store(to + i);
  }
}

// to[d][i] = from[i][d]: rows as pack_rows left them become columns, kTile of them apart.
template <class V, int64_t kTile>
void transpose_rows(const float* from, int64_t count, int64_t padded, float* to) {
  for (int64_t i = 0; i < count; i += V::kWidth) {
    for (int64_t d = 0; d < padded; d += 4) {
      const float* p = from + i * padded + d;
      V a = V::load_quads(p, 4 * padded), b = V::load_quads(p + padded, 4 * padded);
      V c = V::load_quads(p + 2 * padded, 4 * padded), e = V::load_quads(p + 3 * padded, 4 * padded);
      transpose_quads(a, b, c, e);
      a.store(to + d * kTile + i);
      b.store(to + (d + 1) * kTile + i);
      c.store(to + (d + 2) * kTile + i);
      e.store(to + (d + 3) * kTile + i);
    }
  }
}

// Which keys each query of a tile sees: [begin[q], end[q]), less the hidden ones of key_visible.
template <class V>
struct QueryView {
  int64_t begin[kQueryTile], end[kQueryTile];
  int64_t first_key, last_key;  // the hull of all: [first_key, last_key)

  QueryView(const TileMask& mask, int64_t query_begin, int64_t queries, int64_t keys) {
    first_key = keys;
    last_key = 0;
    for (int64_t q = 0; q < queries; ++q) {
      const int64_t position = query_begin + q + mask.query_offset;
      begin[q] = 0;
      end[q] = keys;
      if (mask.causal && position + 1 < keys) end[q] = position + 1 < 0 ? 0 : position + 1;
      if (mask.window > 0 && position - mask.window + 1 > 0) begin[q] = position - mask.window + 1;
      if (mask.first_visible != nullptr && mask.first_visible[query_begin + q] > begin[q]) {
        begin[q] = mask.first_visible[query_begin + q];
      }
      if (begin[q] >= end[q]) begin[q] = end[q] = 0;
      if (begin[q] < end[q] && begin[q] < first_key) first_key = begin[q];
      if (end[q] > last_key) last_key = end[q];
    }
  }
};

// The same for the keys [key_begin, key_begin + keys) of one tile, counted from key_begin.
template <class V>
struct TileView {
  float begin[kQueryTile], end[kQueryTile];
  float visible[kKeyTile];  // of key_visible, 0 or 1; beyond the keys 0
  bool hides_keys = false;  // some entry of visible is 0
  bool is_empty = true;     // no query sees a key
  bool is_full = true;      // every query sees every key
  int64_t queries, keys;

  TileView(const TileMask& mask, const QueryView<V>& view, int64_t queries_here, int64_t key_begin,
           int64_t keys_here)
      : queries(queries_here), keys(keys_here) {
    for (int64_t q = 0; q < kQueryTile; ++q) begin[q] = end[q] = 0;
    for (int64_t q = 0; q < queries; ++q) {
      int64_t from = view.begin[q] - key_begin, to = view.end[q] - key_begin;
      from = from < 0 ? 0 : from;
      to = to > keys ? keys : to;
      is_full = is_full && from == 0 && to == keys;
      if (from >= to) continue;
      is_empty = false;
      begin[q] = static_cast<float>(from);
      end[q] = static_cast<float>(to);
    }
    if (is_empty || mask.key_visible == nullptr) return;
    bool sees_none = true;
    for (int64_t j = 0; j < kKeyTile; ++j) {
      const bool shown = j < keys && mask.key_visible[key_begin + j] != 0;
      visible[j] = shown ? 1.0f : 0.0f;
      if (j < keys && !shown) hides_keys = true;
      sees_none = sees_none && !shown;
    }
    is_empty = sees_none;
    is_full = is_full && !hides_keys;
  }

  // The hull of the keys that queries [query_begin, query_end) see.
  void keys_of(int64_t query_begin, int64_t query_end, int64_t& from, int64_t& to) const {
    from = keys;
    to = 0;
    for (int64_t q = query_begin; q < query_end; ++q) {
      const auto first = static_cast<int64_t>(begin[q]), last = static_cast<int64_t>(end[q]);
      if (first >= last) continue;
      from = first < from ? first : from;
      to = last > to ? last : to;
    }
    if (from > to) from = to;
  }

  // The hull of the queries that see one of the keys [key_begin, key_end).
  void queries_of(int64_t key_begin, int64_t key_end, int64_t& from, int64_t& to) const {
    const auto low = static_cast<float>(key_begin), high = static_cast<float>(key_end);
    from = 0;
    to = queries;
    while (from < to && !(begin[from] < high && end[from] > low)) ++from;
    while (from < to && !(begin[to - 1] < high && end[to - 1] > low)) --to;
  }
};

}  // namespace bev::cpu
