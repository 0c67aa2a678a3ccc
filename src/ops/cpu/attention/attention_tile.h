// What the attention kernels share: packed tiles, and which keys of a tile a query sees. For kernel
// files (see simd.h).
#pragma once

#include "ops/attention_dropout.h"
#include "ops/cpu/attention/attention_problem.h"
#include "ops/cpu/attention/tile_matmul.h"
#include "ops/cpu/kernels/dropout_kernels.h"
#include "ops/cpu/simd/vector_loops.h"

namespace bev::cpu {

template <class V>
int64_t padded_to(int64_t count) {
  return (count + V::kWidth - 1) / V::kWidth * V::kWidth;
}

// The next `floats` of a workspace.
template <class V>
float* take(TileMemory& memory, int64_t floats) {
  float* piece = memory.next;
  memory.next += (floats + 15) / 16 * 16;
  return piece;
}

// Asks for the cache lines of rows [begin, end) of a tile; the stride of a token is too long for
// the hardware to guess the next row.
template <class V, class T>
void prefetch_rows(const T* from, int64_t stride, int64_t begin, int64_t end, int64_t head_dim) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t d = 0; d < head_dim; d += kLine) __builtin_prefetch(from + i * stride + d);
  }
}

// to[i][:] = factor * from[i * stride][:], zero from head_dim up to the padded width. Rows from
// `count` up to a whole vector of rows are zero.
template <class V, class T>
void pack_rows(const T* from, int64_t stride, int64_t count, int64_t head_dim, float factor,
               float* to) {
  const int64_t padded = padded_to<V>(head_dim);
  const V scale = V::broadcast(factor);
  constexpr int64_t kAhead = 6;
  prefetch_rows<V>(from, stride, 0, count < kAhead ? count : kAhead, head_dim);
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      prefetch_rows<V>(from, stride, i + kAhead, i + kAhead + 1, head_dim);
    }
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
      V column[4];
      for (int n = 0; n < 4; ++n) column[n] = V::load_quads(p + n * padded, 4 * padded);
      transpose_quads(column[0], column[1], column[2], column[3]);
      for (int n = 0; n < 4; ++n) column[n].store(to + (d + n) * kTile + i);
    }
  }
}

// Which keys each query of a tile sees: [begin[q], end[q]).
template <class V>
struct QueryView {
  int64_t begin[kQueryTile], end[kQueryTile];
  int64_t first_key = 0, last_key = 0;  // the hull of all: [first_key, last_key)

  QueryView() = default;
  QueryView(const TileMask& mask, int64_t query_begin, int64_t queries, int64_t keys) {
    first_key = keys;
    last_key = 0;
    for (int64_t q = 0; q < queries; ++q) {
      const int64_t position = query_begin + q + mask.query_offset;
      begin[q] = 0;
      end[q] = query_begin + q < mask.query_length ? mask.key_length : 0;
      if (mask.causal && position + 1 < end[q]) end[q] = position + 1 < 0 ? 0 : position + 1;
      if (mask.window > 0 && position - mask.window + 1 > 0) begin[q] = position - mask.window + 1;
      if (mask.document_start != nullptr && mask.document_start[query_begin + q] > begin[q]) {
        begin[q] = mask.document_start[query_begin + q];
      }
      if (begin[q] >= end[q]) begin[q] = end[q] = 0;
      if (begin[q] < end[q] && begin[q] < first_key) first_key = begin[q];
      if (end[q] > last_key) last_key = end[q];
    }
  }
};

// A run of indices.
struct TileSpan {
  int64_t from = 0, to = 0;
};

// The same for the keys [key_begin, key_begin + keys) of one tile, counted from key_begin.
template <class V>
struct TileView {
  static constexpr int64_t kRows = TileBlock<V>::kRows;

  int64_t queries, keys;
  bool is_empty = true;  // no query sees a key
  bool is_full = true;   // every query sees every key
  alignas(64) float begin[kQueryTile], end[kQueryTile];
  // For each block of rows of a product: the hull of the keys some queries see, and the hull of the
  // queries that see some keys. Unless the tile is full or empty.
  TileSpan keys_of_block[kQueryTile / kRows + 1], queries_of_block[kKeyTile / kRows + 1];

  TileView(const QueryView<V>& view, int64_t queries_here, int64_t key_begin, int64_t keys_here)
      : queries(queries_here), keys(keys_here) {
    for (int64_t q = 0; q < queries; ++q) {
      const TileSpan seen = clipped(view, q, key_begin);
      is_full = is_full && seen.from == 0 && seen.to == keys;
      is_empty = is_empty && seen.from >= seen.to;
    }
    if (is_empty || is_full) return;
    for (TileSpan& span : keys_of_block) span = {keys, 0};
    for (TileSpan& span : queries_of_block) span = {queries, 0};
    for (int64_t q = 0; q < kQueryTile; ++q) {
      const TileSpan seen = q < queries ? clipped(view, q, key_begin) : TileSpan{};
      begin[q] = static_cast<float>(seen.from);
      end[q] = static_cast<float>(seen.to);
      if (seen.from >= seen.to) continue;
      widen(keys_of_block[q / kRows], seen.from, seen.to);
      for (int64_t block = seen.from / kRows; block <= (seen.to - 1) / kRows; ++block) {
        widen(queries_of_block[block], q, q + 1);
      }
    }
  }

  // The hull of the keys that queries [from, to) see.
  TileSpan keys_of(int64_t from, int64_t to) const {
    TileSpan hull{keys, 0};
    for (int64_t q = from; q < to; ++q) {
      if (begin[q] < end[q]) {
        widen(hull, static_cast<int64_t>(begin[q]), static_cast<int64_t>(end[q]));
      }
    }
    return hull;
  }

 private:
  static void widen(TileSpan& span, int64_t from, int64_t to) {
    span.from = from < span.from ? from : span.from;
    span.to = to > span.to ? to : span.to;
  }

  TileSpan clipped(const QueryView<V>& view, int64_t q, int64_t key_begin) const {
    const int64_t from = view.begin[q] - key_begin, to = view.end[q] - key_begin;
    const TileSpan seen{from < 0 ? 0 : from, to > keys ? keys : to};
    return seen.from < seen.to ? seen : TileSpan{};
  }
};

}  // namespace bev::cpu
