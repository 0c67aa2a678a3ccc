#include "ops/attention.h"

#include <algorithm>
#include <type_traits>

#include "base/integer.h"
#include "ops/attention_dropout.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// The part of a tensor that belongs to one sequence.
template <class T, class View>
HeadRows<T> heads_of(const View& t, int64_t first_token) {
  return {reinterpret_cast<T*>(t.data) + first_token * t.stride[0], t.stride[0], t.stride[1]};
}

template <class T, class View>
PairRows<T> pairs_of(const View& t) {
  if (!t.present()) return {};
  return {reinterpret_cast<T*>(t.data), t.stride[0], t.stride[1]};
}

template <class T>
T* entry(const ConstTensor& t, int64_t index) {
  return t.present() ? reinterpret_cast<T*>(t.data) + index : nullptr;
}

// The extents of one sequence, and where its queries and keys begin.
template <class Args>
struct Sequences {
  explicit Sequences(const Args& args)
      : a(args),
        size{.queries = args.q.shape[0] / args.sequences,
             .keys = args.k.shape[0] / args.sequences,
             .heads = args.q.shape[1],
             .kv_heads = args.k.shape[1],
             .head_dim = args.q.shape[2],
             .scale = static_cast<float>(args.scale)} {
    BEV_CHECK(size.head_dim <= kMaxHeadDim, Usage,
              "attention: the cpu device has head_dim up to {}, not {}", kMaxHeadDim,
              size.head_dim);
  }

  TileMask mask(int64_t sequence) const {
    return {.causal = a.mask.causal,
            .window = a.mask.window,
            .query_offset = a.mask.query_offset,
            .document_start = entry<const int32_t>(a.mask.document_start, sequence * size.queries),
            .query_length = length(a.mask.query_lengths, sequence, size.queries),
            .key_length = length(a.mask.key_lengths, sequence, size.keys)};
  }

  // Never more than the whole.
  static int64_t length(const ConstTensor& lengths, int64_t sequence, int64_t whole) {
    if (!lengths.present()) return whole;
    return std::min<int64_t>(*entry<const int32_t>(lengths, sequence), whole);
  }

  TileDropout dropout(int64_t sequence) const {
    const ops::AttentionDropout& d = a.dropout;
    const bool drops = d.probability > 0;
    return {.rows = drops ? entry<const int64_t>(d.rows, sequence * size.queries) : nullptr,
            .key = d.key,
            .head_begin = d.head_begin,
            .threshold = ops::attention_threshold(d.probability),
            .scale = static_cast<float>(ops::attention_keep_factor(d.probability))};
  }

  const Args& a;
  AttentionSizes size;
};

template <class T>
AttentionGradient<T> gradient_of(const Sequences<ops::AttentionBackward>& all, int64_t sequence) {
  const ops::AttentionBackward& a = all.a;
  const int64_t query = sequence * all.size.queries, key = sequence * all.size.keys;
  return {.size = all.size,
          .mask = all.mask(sequence),
          .dropout = all.dropout(sequence),
          .dout = heads_of<const T>(a.dout, query),
          .q = heads_of<const T>(a.q, query),
          .k = heads_of<const T>(a.k, key),
          .v = heads_of<const T>(a.v, key),
          .out = heads_of<const T>(a.out, query),
          .bias = pairs_of<const T>(a.bias),
          .dq = heads_of<T>(a.dq, query),
          .dk = heads_of<T>(a.dk, key),
          .dv = heads_of<T>(a.dv, key),
          .dbias = pairs_of<float>(a.dbias),
          .lse = reinterpret_cast<const float*>(a.lse.data) + sequence * a.lse.stride[0],
          .lse_stride = a.lse.stride[1]};
}

TileMemory memory_of(const HostDevice& host, int thread) {
  return {reinterpret_cast<float*>(host.workspace(thread))};
}

// As many as the workspace holds, unless that leaves threads without work. No result depends on it.
int64_t tiles_per_task(HostDevice& host, int64_t heads, int64_t tiles, int64_t head_dim) {
  int64_t share = head_dim <= kMaxHeadDim / 2 ? kQueryTilesPerTask : kQueryTilesPerTask / 2;
  while (share > 1 && heads * div_ceil(tiles, share) < 4 * host.threads().threads()) share /= 2;
  return share;
}

// Sequences whose keys one task takes: all of them if they add to one gradient of the bias.
int64_t sequences_per_task(const ops::AttentionBackward& a) {
  return a.dbias.present() ? a.sequences : 1;
}

// One pass over the pairs of tiles: a task owns a kv head, its query heads, and so all it adds to.
template <class T>
void backward_by_kv_head(HostDevice& host, const Sequences<ops::AttentionBackward>& all) {
  const AttentionSizes& size = all.size;
  const int64_t share = sequences_per_task(all.a);
  host.threads().each(all.a.sequences / share * size.kv_heads, [&](int64_t task, int thread) {
    const int64_t kv_head = task % size.kv_heads, first = task / size.kv_heads * share;
    for (int64_t sequence = first; sequence < first + share; ++sequence) {
      const AttentionGradient<T> g = gradient_of<T>(all, sequence);
      for (int64_t key = 0; key < size.keys; key += kKeyTile) {
        kernels_of<T>().attention_backward_keys(g, kv_head, key, true, memory_of(host, thread));
      }
    }
  });
}

// The products of one pass are to those of two as 5 to 7; whole kv heads may leave threads idle.
bool one_pass_is_shorter(int64_t kv_heads, int64_t threads) {
  return 5 * threads * div_ceil(kv_heads, threads) <= 7 * kv_heads;
}

// Two passes, by tiles of queries and by tiles of keys: the scores are computed twice, but there
// are many small tasks and every sum stays in f32 in the workspace. Gives the bits of one pass.
template <class T>
void backward_by_tile(HostDevice& host, const Sequences<ops::AttentionBackward>& all) {
  const AttentionSizes& size = all.size;
  const int64_t query_tiles = div_ceil(size.queries, kQueryTile);
  const int64_t key_tiles = div_ceil(size.keys, kKeyTile);
  const int64_t query_tasks = all.a.sequences * size.heads * query_tiles;
  const int64_t share = sequences_per_task(all.a);
  const int64_t key_tasks = all.a.sequences / share * size.kv_heads * key_tiles;
  host.threads().each(query_tasks + key_tasks, [&](int64_t task, int thread) {
    const TileMemory memory = memory_of(host, thread);
    if (task < key_tasks) {
      const int64_t head = task / key_tiles, first = head / size.kv_heads * share;
      for (int64_t sequence = first; sequence < first + share; ++sequence) {
        const AttentionGradient<T> g = gradient_of<T>(all, sequence);
        kernels_of<T>().attention_backward_keys(g, head % size.kv_heads,
                                                task % key_tiles * kKeyTile, false, memory);
      }
    } else {
      task -= key_tasks;
      const int64_t head = task / query_tiles;
      const int64_t tile = query_tiles - 1 - task % query_tiles;
      const AttentionGradient<T> g = gradient_of<T>(all, head / size.heads);
      kernels_of<T>().attention_backward_queries(g, head % size.heads, tile * kQueryTile, memory);
    }
  });
}

}  // namespace

size_t attention_workspace_bytes() {
  // Eight tiles of rows and two of scores.
  constexpr int64_t kTile = std::max(kQueryTile, kKeyTile);
  return static_cast<size_t>(8 * kTile * kMaxHeadDim + 2 * kQueryTile * kKeyTile) * sizeof(float);
}

void attention(Exec& ex, const ops::Attention& a) {
  visit_cpu(a.q.dtype, "attention", [&]<class T>() {
    const Sequences<ops::Attention> all(a);
    const AttentionSizes& size = all.size;
    HostDevice& host = host_of(ex);
    const int64_t tiles = div_ceil(size.queries, kQueryTile);
    const int64_t share = tiles_per_task(host, a.sequences * size.heads, tiles, size.head_dim);
    const int64_t parts = div_ceil(tiles, share);
    host.threads().each(a.sequences * size.heads * parts, [&](int64_t task, int thread) {
      // Late tiles of a causal mask are long: they go first, so that no thread ends on one.
      const int64_t tile = (parts - 1 - task % parts) * share;
      const int64_t head = task / parts % size.heads, sequence = task / parts / size.heads;
      const int64_t query = sequence * size.queries, key = sequence * size.keys;
      const AttentionForward<T> forward{
          .size = size,
          .mask = all.mask(sequence),
          .dropout = all.dropout(sequence),
          .q = heads_of<const T>(a.q, query),
          .k = heads_of<const T>(a.k, key),
          .v = heads_of<const T>(a.v, key),
          .bias = pairs_of<const T>(a.bias),
          .out = heads_of<T>(a.out, query),
          .lse = reinterpret_cast<float*>(a.lse.data) + sequence * a.lse.stride[0],
          .lse_stride = a.lse.stride[1]};
      kernels_of<T>().attention_forward(forward, head, tile * kQueryTile,
                                        std::min(share, tiles - tile), memory_of(host, thread));
    });
  });
}

void attention_backward(Exec& ex, const ops::AttentionBackward& a) {
  visit_cpu(a.q.dtype, "attention_backward", [&]<class T>() {
    const Sequences<ops::AttentionBackward> all(a);
    HostDevice& host = host_of(ex);
    // dq in f32 is its own accumulator. Without keys one pass would not write dq.
    if (std::is_same_v<T, float> && all.size.keys > 0 &&
        one_pass_is_shorter(a.sequences / sequences_per_task(a) * all.size.kv_heads,
                            host.threads().threads())) {
      backward_by_kv_head<T>(host, all);
    } else {
      backward_by_tile<T>(host, all);
    }
  });
}

}  // namespace bev::cpu
