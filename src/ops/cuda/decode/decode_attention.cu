// Attention of one new token of each sequence over its cached keys. The host does not know the
// lengths, which is why launches depend on the most there may be. The keys of a sequence are dealt
// to several blocks, a stretch to each in turn: where a block begins then does not depend on the
// length, so that it asks for both the length and its pages at once. The blocks of a sequence are a
// cluster that puts together what they have found, or there are more of them and merge_splits does.
#include "ops/attention.h"
#include "ops/cuda/primitives/cluster.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/mma.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kWriteThreads = 256;
constexpr int kMergeThreads = 128;
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kNothing = -INFINITY;
static_assert(kMostDecodeCluster == kMostClusterBlocks);

// Of a block where so many lanes share a key that so many heads see: what its warps find fits into
// shared memory.
constexpr int decode_threads(int lanes, int heads) { return heads > 1 && lanes < 32 ? 256 : 128; }
// Where one head sees a key, a block has few keys at a time, and its threads few registers: blocks
// hide each other's waiting, and find room beside those of the kernels before, to ask for what is
// cached while those still run. Where there are many blocks, they are smaller, so that all run at a
// time. Where there may be many keys for few blocks, a block has more of them at a time.
constexpr int kSmallKeys = 2;
constexpr int kSmallThreads = 128, kSmallBlocks = 6;
constexpr int kTinyThreads = 64;
constexpr int tiny_keys(int lanes) { return lanes < 16 ? 2 : 4; }
constexpr int tiny_blocks(int lanes) { return lanes < 16 ? 13 : 8; }
constexpr int64_t kManyKeys = 2048;

template <class T>
__global__ void __launch_bounds__(kWriteThreads)
    write_rows(Rows<const T> k, Rows<const T> v, const int32_t* places, T* keys, T* values,
               int64_t rows, int64_t kv_heads, int64_t head_dim, bool wide) {
  trigger_dependents();
  grid_dependency_wait();
  each_group(rows, head_dim, [&](int64_t row, int64_t column) {
    const int64_t token = row / kv_heads, place = places[token];
    if (place < 0) return;
    const int64_t to = (place * kv_heads + row - token * kv_heads) * head_dim;
    store_group(load_group(k[row], column, head_dim, wide), keys + to, column, head_dim, wide);
    store_group(load_group(v[row], column, head_dim, wide), values + to, column, head_dim, wide);
  });
}

template <class T>
struct Decode {
  const T *q, *k, *v, *bias;  // bias: that of the newest token, or null
  T *keys, *values, *out;
  int64_t q_row, q_head, k_row, k_head, v_row, v_head, out_row, out_head, bias_head;
  const int32_t *lengths, *pages;
  int64_t most_pages;
  int page, page_bits;  // page == 1 << page_bits, or page_bits is negative
  int window, heads, kv_heads, head_dim;
  int splits, chunks;     // blocks of a sequence; blocks that share the query heads of a key head
  int stretch;            // keys that a block sees at a time
  float scale;            // to base 2
  bool weights_constant;  // nobody on the way writes lengths, pages or what is cached
  float* parts;           // [sequence, head, split, 1 + head_dim] for merge_splits; null without it

  __device__ __forceinline__ float* part(int64_t sequence, int head, int split) const {
    return parts + ((sequence * heads + head) * splits + split) * (1 + head_dim);
  }
  __device__ __forceinline__ void write(int64_t sequence, int head, int column, float value) const {
    out[sequence * out_row + head * out_head + column] = from_float<T>(value);
  }
};

// Where the tokens base + i * step of a sequence are, as far as there are pages for them.
template <int kKeys, class T>
struct Places {
  int page[kKeys], within[kKeys];

  __device__ __forceinline__ void find(const Decode<T>& p, int64_t sequence, int base, int step) {
    const bool shifts = p.page_bits >= 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) page[i] = (base + i * step) >> (shifts ? p.page_bits : 0);
    if (!shifts) {
#pragma unroll
      for (int& index : page) index /= p.page;
    }
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int index = page[i];
      within[i] = base + i * step - index * p.page;
      page[i] = index < p.most_pages ? p.pages[sequence * p.most_pages + index] : 0;
    }
  }
  // Of a row of the cache.
  __device__ __forceinline__ int64_t offset(const Decode<T>& p, int i, int kv_head) const {
    const int64_t place = int64_t{page[i]} * p.page + within[i];
    return (place * p.kv_heads + kv_head) * p.head_dim;
  }
};

// A softmax over some of the keys: the largest score, the sum of exponentials relative to it, and
// the sum of values so weighted, of which a lane has some columns.
template <int kColumns>
struct Running {
  float largest = kNothing, sum = 0;
  float values[kColumns] = {};

  // Where nothing was seen, relative to 0: the exponentials are 0, and not of NaN.
  __device__ __forceinline__ static float origin(float largest) {
    return largest == kNothing ? 0.0f : largest;
  }
  __device__ __forceinline__ void rise_to(float to) {
    const float factor = fast_exp2(largest - origin(to));
    largest = to;
    sum *= factor;
#pragma unroll
    for (float& value : values) value *= factor;
  }
  // With that of the lane at this distance.
  __device__ __forceinline__ void merge_lanes(int distance) {
    rise_to(fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, distance)));
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
#pragma unroll
    for (float& value : values) value += __shfl_xor_sync(kAllLanes, value, distance);
  }
};

// Columns [column, column + kGroup) of a row: all inside or all outside where rows are wide.
template <bool kWide, class T>
__device__ __forceinline__ Group<T> columns_of(const T* row, int column, int width) {
  if constexpr (!kWide) return load_group(row, column, width, false);
  return column < width ? load_wide(row + column) : Group<T>{};
}

template <bool kWide, class T>
__device__ __forceinline__ void put_columns(const Group<T>& group, T* row, int column, int width) {
  if constexpr (!kWide) {
    store_group(group, row, column, width, false);
  } else if (column < width) {
    store_wide(group, row + column);
  }
}

// What some blocks have found of one element: the logarithm of how much each weighs, and a mean.
template <int kMost, class Found>
__device__ __forceinline__ float mean_of_parts(int parts, Found found) {
  float largest = kNothing;
#pragma unroll kMost
  for (int part = 0; part < parts; ++part) largest = fmaxf(largest, found(part).x);
  float sum = 0, value = 0;
#pragma unroll kMost
  for (int part = 0; part < parts; ++part) {
    const float2 of_part = found(part);
    const float weight = fast_exp2(of_part.x - largest);
    sum += weight;
    value += weight * of_part.y;
  }
  return value / sum;
}

// kLanes lanes share a key, kPer groups of columns each; kHeads query heads see it, of which the
// last may be idle; kKeys keys are on their way at a time; a multiprocessor has kBlocks blocks.
template <class T, bool kWide, int kLanes, int kPer, int kHeads, int kKeys, int kThreads,
          int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) decode_split(Decode<T> p) {
  constexpr int kWarps = kThreads / 32;
  constexpr int kTeams = kThreads / kLanes, kColumns = kPer * kGroup;
  constexpr int kWidth = kLanes * kColumns, kStretch = kTeams * kKeys;
  __shared__ float shared_values[kWarps][kHeads][kWidth];
  __shared__ float shared_largest[kWarps][kHeads], shared_sum[kWarps][kHeads];
  __shared__ float2 of_cluster[kHeads][kWidth];
  const int split = blockIdx.x, kv_head = blockIdx.y / p.chunks, chunk = blockIdx.y % p.chunks;
  const int64_t sequence = blockIdx.z;
  const int group = p.heads / p.kv_heads;
  const int first_head = kv_head * group + chunk * kHeads;
  const int live_heads = min(kHeads, group - chunk * kHeads);
  const int member = threadIdx.x % kLanes, team = threadIdx.x / kLanes;
  const auto column_of = [&](int part) { return (part * kLanes + member) * kGroup; };
  const bool in_cluster = p.splits > 1 && p.parts == nullptr;
  if (in_cluster) announce_to_cluster();

  trigger_dependents();
  if (!p.weights_constant) grid_dependency_wait();
  const int length = max(0, p.lengths[sequence]);
  int base = split * kStretch;
  Places<kKeys, T> places;
  places.find(p, sequence, base + team, kTeams);
  const int newest = length - 1, round = p.splits * kStretch;
  const int first = p.window > 0 ? max(0, length - p.window) : 0;
  const int stretches = (length + kStretch - 1) / kStretch - first / kStretch;
  if (base + kStretch <= first) {
    base += (first - base - kStretch + round) / round * round;
    places.find(p, sequence, base + team, kTeams);
  }
  const bool has_keys = base < length;

  const T* const new_k = p.k + sequence * p.k_row + kv_head * p.k_head;
  const T* const new_v = p.v + sequence * p.v_row + kv_head * p.v_head;
  Group<T> coming_k[kKeys][kPer], coming_v[kKeys][kPer];
  const auto ask = [&](int i, const T* k_row, const T* v_row) {
#pragma unroll
    for (int part = 0; part < kPer; ++part) {
      coming_k[i][part] = columns_of<kWide>(k_row, column_of(part), p.head_dim);
      coming_v[i][part] = columns_of<kWide>(v_row, column_of(part), p.head_dim);
    }
  };
  const auto is_cached = [&](int token) { return token >= first && token < newest; };
  // What is cached of the stretch at `base`, where `places` is.
  const auto ask_cached = [&] {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      if (!is_cached(base + i * kTeams + team)) continue;
      const int64_t at = places.offset(p, i, kv_head);
      ask(i, p.keys + at, p.values + at);
    }
  };
  // The new token; and where there is none, something finite that does not count.
  const auto ask_new = [&] {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      if (!is_cached(base + i * kTeams + team)) ask(i, new_k, new_v);
    }
  };
  ask_cached();
  places.find(p, sequence, base + round + team, kTeams);
  if (p.weights_constant) grid_dependency_wait();
  ask_new();
  Group<T> of_q[kHeads][kPer];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int head = first_head + min(h, live_heads - 1);
    const T* row = p.q + sequence * p.q_row + head * p.q_head;
#pragma unroll
    for (int part = 0; part < kPer; ++part)
      of_q[h][part] = columns_of<kWide>(row, column_of(part), p.head_dim);
  }
  float q[kHeads][kColumns];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) q[h][c] = of_q[h][c / kGroup][c % kGroup] * p.scale;
  }
  Running<kColumns> running[kHeads];
  while (base < length) {
    Group<T> k[kKeys][kPer], v[kKeys][kPer];
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
#pragma unroll
      for (int part = 0; part < kPer; ++part) {
        k[i][part] = coming_k[i][part];
        v[i][part] = coming_v[i][part];
      }
    }
    const int here = base + team;
    base += round;
    if (base < length) {
      ask_cached();
      ask_new();
      places.find(p, sequence, base + round + team, kTeams);
    }
    float scores[kHeads][kKeys];
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int token = here + i * kTeams;
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float score = 0;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) score += q[h][c] * k[i][c / kGroup][c % kGroup];
#pragma unroll
        for (int distance = kLanes / 2; distance > 0; distance /= 2)
          score += __shfl_xor_sync(kAllLanes, score, distance);
        scores[h][i] = token >= first && token < length ? score : kNothing;
      }
    }
    if (p.bias != nullptr) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        const T* row = p.bias + (first_head + min(h, live_heads - 1)) * p.bias_head;
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
          const int back = newest - here - i * kTeams;
          if (back >= 0) scores[h][i] += to_float(row[-back]) * kLog2E;
        }
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float largest = running[h].largest;
#pragma unroll
      for (const float score : scores[h]) largest = fmaxf(largest, score);
      running[h].rise_to(largest);
      const float origin = Running<kColumns>::origin(largest);
#pragma unroll
      for (int i = 0; i < kKeys; ++i) {
        const float weight = fast_exp2(scores[h][i] - origin);
        running[h].sum += weight;
#pragma unroll
        for (int c = 0; c < kColumns; ++c)
          running[h].values[c] += weight * v[i][c / kGroup][c % kGroup];
      }
    }
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      // Nobody reads this place of the cache here.
      if (here + i * kTeams != newest || chunk != 0) continue;
      Places<1, T> place;
      place.find(p, sequence, newest, 0);
      const int64_t at = place.offset(p, 0, kv_head);
#pragma unroll
      for (int part = 0; part < kPer; ++part) {
        put_columns<kWide>(k[i][part], p.keys + at, column_of(part), p.head_dim);
        put_columns<kWide>(v[i][part], p.values + at, column_of(part), p.head_dim);
      }
    }
  }

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int distance = kLanes; distance < 32; distance *= 2) running[h].merge_lanes(distance);
    if (lane < kLanes) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c)
        shared_values[warp][h][column_of(c / kGroup) + c % kGroup] = running[h].values[c];
    }
    if (lane == 0) {
      shared_largest[warp][h] = running[h].largest;
      shared_sum[warp][h] = running[h].sum;
    }
  }
  if (in_cluster) wait_for_cluster();  // all have begun
  __syncthreads();
  // The columns of each head that a block of a cluster finishes.
  const int share_bits = __ffs(kWidth) - __ffs(p.splits), share = 1 << share_bits;
  const bool alone = p.splits == 1 || stretches <= 1;
  for (int e = threadIdx.x; e < live_heads * kWidth; e += kThreads) {
    const int h = e / kWidth, column = e % kWidth, head = first_head + h;
    if (column >= p.head_dim) continue;
    float largest = kNothing, sum = 0, value = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared_largest[w][h]);
    const float origin = Running<kColumns>::origin(largest);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float factor = fast_exp2(shared_largest[w][h] - origin);
      sum += factor * shared_sum[w][h];
      value += factor * shared_values[w][h][column];
    }
    const float2 found =
        has_keys ? make_float2(largest + log2f(sum), value / sum) : make_float2(kNothing, 0.0f);
    if (alone) {
      if (has_keys || (length == 0 && split == 0)) p.write(sequence, head, column, found.y);
    } else if (in_cluster) {
      const int at = split * share + (column & (share - 1));
      store_in_block(&of_cluster[h][at], column >> share_bits, found);
    } else {
      float* part = p.part(sequence, head, split);
      part[1 + column] = found.y;
      if (column == 0) part[0] = found.x;
    }
  }
  if (alone || !in_cluster) return;
  announce_to_cluster();
  wait_for_cluster();  // nobody writes to another any more
  for (int e = threadIdx.x; e < live_heads * share; e += kThreads) {
    const int h = e >> share_bits, mine = e & (share - 1), column = split * share + mine;
    if (column >= p.head_dim) continue;
    const float mean = mean_of_parts<kMostDecodeCluster>(
        p.splits, [&](int part) { return of_cluster[h][part * share + mine]; });
    p.write(sequence, first_head + h, column, mean);
  }
}

// Block: one query head of one sequence.
template <class T>
__global__ void __launch_bounds__(kMergeThreads) merge_splits(Decode<T> p) {
  const int64_t sequence = blockIdx.y;
  const int head = blockIdx.x;
  trigger_dependents();
  grid_dependency_wait();
  const int length = max(0, p.lengths[sequence]);
  const int first = p.window > 0 ? max(0, length - p.window) : 0;
  const int end = (length + p.stretch - 1) / p.stretch;
  if (end - first / p.stretch <= 1) return;  // decode_split has written it
  const int parts = min(p.splits, end);      // with a window, some may have no keys
  for (int column = threadIdx.x; column < p.head_dim; column += kMergeThreads) {
    const float mean = mean_of_parts<8>(parts, [&](int split) {
      const float* part = p.part(sequence, head, split);
      return make_float2(part[0], part[1 + column]);
    });
    p.write(sequence, head, column, mean);
  }
}

// Calls f.template operator()<kWide, kLanes, kPer, kHeads, kKeys>(). One kernel serves all that is
// not wide.
template <class F>
void visit_shape(bool wide, int64_t head_dim, int64_t group, F&& f) {
  const auto with_lanes = [&]<int kLanes>() {
    if (group == 1) return f.template operator()<true, kLanes, 1, 1, 4>();
    if (group == 2) return f.template operator()<true, kLanes, 1, 2, 4>();
    if (group <= 4 || kLanes == 32) return f.template operator()<true, kLanes, 1, 4, 4>();
    if constexpr (kLanes < 32) f.template operator()<true, kLanes, 1, 8, 2>();
  };
  if (wide && head_dim <= 8 * kGroup) return with_lanes.template operator()<8>();
  if (wide && head_dim <= 16 * kGroup) return with_lanes.template operator()<16>();
  if (wide && head_dim <= 32 * kGroup) return with_lanes.template operator()<32>();
  static_assert(32 * 4 * kGroup == kMostDecodeDims);
  f.template operator()<false, 32, 4, 1, 1>();
}

}  // namespace

void kv_cache_write(Exec& ex, const ops::KvCacheWrite& c) {
  const int64_t rows = rows_of(c.k), head_dim = width_of(c.k);
  if (rows * head_dim == 0) return;
  const bool wide = are_wide(c.k, c.v, c.keys, c.values);
  const unsigned blocks = blocks_for(ex, rows * ceil_div(head_dim, kGroup), kWriteThreads);
  visit_cuda(c.k.dtype, "kv_cache_write", [&]<class T>() {
    launch_programmatic("kv_cache_write", write_rows<T>, dim3(blocks), kWriteThreads, 0,
                        stream_of(ex), Rows<const T>(c.k), Rows<const T>(c.v),
                        data_of<int32_t>(c.places), data_of<T>(c.keys), data_of<T>(c.values), rows,
                        c.k.shape[1], head_dim, wide);
  });
}

void decode_attention(Exec& ex, const ops::DecodeAttention& d) {
  const int64_t sequences = d.q.rows(), heads = d.q.shape[1], head_dim = d.q.shape[2];
  if (d.out.shape.elements() == 0) return;
  const int64_t kv_heads = d.k.shape[1], group = heads / kv_heads;
  if (head_dim > kMostDecodeDims) refuse_head_dim("decode_attention", head_dim, kMostDecodeDims);
  ArenaScope scope(ex.scratch);
  const Tensor parts = workspace_of(ex, d, "parts of attention");
  const auto narrow = [](int64_t value) { return static_cast<int>(value); };
  int page_bits = -1;
  if ((d.page & (d.page - 1)) == 0) {
    while (int64_t{1} << ++page_bits != d.page) {
    }
  }
  visit_cuda(d.q.dtype, "decode_attention", [&]<class T>() {
    Decode<T> p{.q = data_of<T>(d.q),
                .k = data_of<T>(d.k),
                .v = data_of<T>(d.v),
                .bias = d.bias.present() ? data_of<T>(d.bias) + d.bias.shape[1] - 1 : nullptr,
                .keys = data_of<T>(d.keys),
                .values = data_of<T>(d.values),
                .out = data_of<T>(d.out),
                .q_row = d.q.stride[0],
                .q_head = d.q.stride[1],
                .k_row = d.k.stride[0],
                .k_head = d.k.stride[1],
                .v_row = d.v.stride[0],
                .v_head = d.v.stride[1],
                .out_row = d.out.stride[0],
                .out_head = d.out.stride[1],
                .bias_head = d.bias.stride[0],
                .lengths = data_of<int32_t>(d.lengths),
                .pages = data_of<int32_t>(d.pages),
                .most_pages = d.pages.shape[1],
                .page = narrow(d.page),
                .page_bits = page_bits,
                .window = narrow(std::min<int64_t>(d.window, INT32_MAX)),
                .heads = narrow(heads),
                .kv_heads = narrow(kv_heads),
                .head_dim = narrow(head_dim),
                .splits = narrow(decode_splits(d)),
                .chunks = 1,
                .stretch = 1,
                .scale = static_cast<float>(d.scale) * kLog2E,
                .weights_constant = d.cache_is_constant,
                .parts = parts.present() ? data_of<float>(parts) : nullptr};
    const bool wide = head_dim % kGroup == 0 && are_wide(d.q, d.k, d.v, d.keys, d.values);
    visit_shape(
        wide, head_dim, group, [&]<bool kWide, int kLanes, int kPer, int kHeads, int kKeys>() {
          const auto run = [&]<int kAtOnce, int kThreads, int kBlocks>() {
            const auto kernel =
                decode_split<T, kWide, kLanes, kPer, kHeads, kAtOnce, kThreads, kBlocks>;
            const bool clusters = p.parts == nullptr && knows_sm90("decode_attention", kernel);
            if (p.parts == nullptr && !clusters) p.splits = 1;
            p.chunks = narrow(ceil_div(group, kHeads));
            p.stretch = kThreads / kLanes * kAtOnce;
            const dim3 blocks(static_cast<unsigned>(p.splits),
                              static_cast<unsigned>(kv_heads * p.chunks),
                              static_cast<unsigned>(sequences));
            launch_clusters("decode_attention", kernel, clusters ? p.splits : 1, blocks, kThreads,
                            0, stream_of(ex), p);
          };
          if constexpr (kWide && kHeads == 1 && kLanes < 32 && sizeof(T) == 2) {
            const int64_t room = int64_t{kSmallBlocks} * gpu_of(ex).multiprocessors();
            if (p.splits == 1 && kv_heads * sequences > room)
              return run
                  .template operator()<tiny_keys(kLanes), kTinyThreads, tiny_blocks(kLanes)>();
            if (p.splits == 1 || d.pages.shape[1] * d.page <= kManyKeys)
              return run.template operator()<kSmallKeys, kSmallThreads, kSmallBlocks>();
          }
          run.template operator()<kKeys, decode_threads(kLanes, kHeads), 1>();
        });
    if (p.parts == nullptr) return;
    const dim3 blocks(static_cast<unsigned>(heads), static_cast<unsigned>(sequences));
    launch_programmatic("decode_attention", merge_splits<T>, blocks, kMergeThreads, 0,
                        stream_of(ex), p);
  });
}

}  // namespace bev::cuda
