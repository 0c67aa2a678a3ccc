// Two kernels. The first reads all logits with many blocks; a row with temperature 0 needs no other
// pass over them. The second has one block per row, which merges the parts and draws. The ids kept
// of a row are a prefix of its order by descending probability, so that the last rank kept, the
// border, defines them. Weights are integer multiples of 2^-40: their sums do not depend on the
// order of additions.
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/mma.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"
#include "ops/sampling.h"

namespace bev::cuda {

namespace {

constexpr int kPartThreads = 256, kPartGroups = 2;
static_assert(kPartThreads * kPartGroups * kGroup == kChoicePart);
constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr int kAhead = 4;  // groups of columns that a thread loads at a time
constexpr int kMostListed = 8192;
constexpr int kBins = 1024, kBinsPerHalving = 32;  // of logits, by their weights
constexpr int kChunks = 1024;  // chunks of a row, each with a separate sum, for the draw
constexpr int kWays = 8;
constexpr float kOne = 0x1p40f, kSmallest = -42.0f;  // exponents below it have weight 0
constexpr double kLog2E = 1.4426950408889634;
constexpr float kNothing = -INFINITY;

// The rank of an id by descending probability: a smaller rank is more likely.
using Rank = unsigned long long;
constexpr Rank kNoRank = ~Rank{0};
constexpr Rank kLastRank = Rank{0xFF800000u} << 32;  // after all finite logits

__device__ __forceinline__ Rank rank_of(float logit, int id) {
  const uint32_t bits = __float_as_uint(logit + 0.0f);  // one zero only
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return Rank{~ordered} << 32 | static_cast<uint32_t>(id);
}
__device__ __forceinline__ float logit_of(Rank rank) {
  const uint32_t ordered = ~static_cast<uint32_t>(rank >> 32);
  return __uint_as_float((ordered >> 31) != 0 ? ordered & 0x7FFFFFFFu : ~ordered);
}
__device__ __forceinline__ int id_of(Rank rank) { return static_cast<int>(rank & 0xFFFFFFFFu); }

// Result of one block of the first kernel.
struct Part {
  Rank best;
  float largest, sum;  // of exponentials relative to the largest
};
static_assert(sizeof(Part) == 16);

template <class T>
struct Choice {
  const T* logits;
  int64_t columns;
  int classes, words, parts;
  const double* options;
  const int64_t* keys;
  int32_t* seen;  // may be null
  int32_t* ids;
  float* logprobs;
  Part* found;  // [row, part]
  bool wide;

  __device__ __forceinline__ double option(int64_t row, ops::SamplingColumn column) const {
    return options[row * ops::kChoiceColumns + static_cast<int>(column)];
  }
};

// One row, with its penalties.
template <class T>
struct Logits {
  const T* row;
  const int32_t* seen;
  float penalty;
  int classes;
  bool wide;

  __device__ __forceinline__ Logits(const Choice<T>& c, int64_t at)
      : row(c.logits + at * c.columns),
        seen(c.seen != nullptr ? c.seen + at * c.words : nullptr),
        penalty(static_cast<float>(c.option(at, ops::SamplingColumn::RepetitionPenalty))),
        classes(c.classes),
        wide(c.wide) {}

  __device__ __forceinline__ Group<T> load(int column) const {
    return load_group(row, column, classes, wide);
  }
  // Calls f(logit, id) for the ids of the group whose logit is finite.
  template <class F>
  __device__ __forceinline__ void each_of(const Group<T>& group, int column, F f) const {
    if (column >= classes) return;
    const uint32_t marks =
        seen != nullptr ? static_cast<uint32_t>(seen[column / 32]) >> (column % 32) : 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      float logit = group[j];
      if ((marks >> j & 1u) != 0) logit = ops::penalised(logit, penalty);
      if (column + j < classes && isfinite(logit)) f(logit, column + j);
    }
  }
  // The same for the whole row, in the threads of a block of kThreads.
  template <class F>
  __device__ __forceinline__ void each(F f) const {
    constexpr int kStride = kThreads * kGroup;
    for (int first = threadIdx.x * kGroup; first < classes; first += kAhead * kStride) {
      Group<T> groups[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) groups[i] = load(first + i * kStride);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) each_of(groups[i], first + i * kStride, f);
    }
  }
};

__device__ __forceinline__ float origin_of(float largest) {
  return largest == kNothing ? 0.0f : largest;
}
__device__ __forceinline__ Rank warp_least(Rank rank) {
  for (int offset = 16; offset > 0; offset /= 2)
    rank = min(rank, __shfl_xor_sync(kAllLanes, rank, offset));
  return rank;
}
__device__ __forceinline__ uint64_t warp_total(uint64_t value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}
// The sum over this lane and all before it.
__device__ __forceinline__ uint64_t warp_sums(uint64_t value) {
  const int lane = threadIdx.x % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint64_t before = __shfl_up_sync(kAllLanes, value, offset);
    if (lane >= offset) value += before;
  }
  return value;
}

// Merges the parts of a warp's lanes, in every lane.
__device__ __forceinline__ Part merged(Part part) {
  const float largest = warp_max(part.largest);
  const float sum = part.sum * expf(part.largest - origin_of(largest));
  return {warp_least(part.best), largest, warp_sum(sum)};
}

// NaN and +infinity make the sum NaN, as intended; they have no rank.
template <class T>
__global__ void __launch_bounds__(kPartThreads) look_at_part(Choice<T> c) {
  __shared__ Part shared[kPartThreads / 32];
  trigger_dependents();
  grid_dependency_wait();
  const int64_t row = blockIdx.y;
  const Logits<T> logits(c, row);
  const int first = blockIdx.x * static_cast<int>(kChoicePart) + threadIdx.x * kGroup;
  Group<T> groups[kPartGroups];
#pragma unroll
  for (int i = 0; i < kPartGroups; ++i) groups[i] = logits.load(first + i * kPartThreads * kGroup);
  Part part{kNoRank, kNothing, 0.0f};
#pragma unroll
  for (int i = 0; i < kPartGroups; ++i) {
    const int column = first + i * kPartThreads * kGroup;
    logits.each_of(groups[i], column,
                   [&](float logit, int id) { part.best = min(part.best, rank_of(logit, id)); });
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (column + j < c.classes) part.largest = fmaxf(part.largest, groups[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPartGroups; ++i) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (first + i * kPartThreads * kGroup + j < c.classes)
        part.sum += expf(groups[i][j] - origin_of(part.largest));
    }
  }
  part = merged(part);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = part;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  part = threadIdx.x < kPartThreads / 32 ? shared[threadIdx.x] : Part{kNoRank, kNothing, 0.0f};
  part = merged(part);
  if (threadIdx.x == 0) c.found[row * c.parts + blockIdx.x] = part;
}

// Shared memory of the second kernel.
struct Shared {
  Part row;
  uint64_t sums[kWarps][kWays];
  uint64_t masses[kChunks];
  uint32_t counts[kBins];
  uint32_t listed;
  int last_bin, chosen;
  Rank border;
  uint64_t target;
};
static_assert(kChunks == kThreads && kBins == kThreads && kChunks % 32 == 0);

// The sum over the block, in every thread.
__device__ __forceinline__ uint64_t block_total(Shared& s, uint64_t value) {
  value = warp_total(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) s.sums[threadIdx.x / 32][0] = value;
  __syncthreads();
  uint64_t total = 0;
  for (int warp = 0; warp < kWarps; ++warp) total += s.sums[warp][0];
  return total;
}
// The sum over this thread and all before it.
__device__ __forceinline__ uint64_t block_sums(Shared& s, uint64_t value) {
  const int warp = threadIdx.x / 32;
  value = warp_sums(value);
  __syncthreads();
  if (threadIdx.x % 32 == 31) s.sums[warp][0] = value;
  __syncthreads();
  for (int before = 0; before < warp; ++before) value += s.sums[before][0];
  return value;
}

// Sampling parameters of a row.
struct Rule {
  float top, min_p;
  float scale;  // to exponents of base 2
  double top_p;
  uint64_t top_k;  // 0: all

  template <class T>
  __device__ __forceinline__ Rule(const Choice<T>& c, int64_t row, Rank best)
      : top(logit_of(best)),
        min_p(static_cast<float>(c.option(row, ops::SamplingColumn::MinP))),
        scale(static_cast<float>(
            fmin(kLog2E / c.option(row, ops::SamplingColumn::Temperature), 1e30))),
        top_p(c.option(row, ops::SamplingColumn::TopP)) {
    const double k = c.option(row, ops::SamplingColumn::TopK);
    top_k = k > 0 && k < c.classes ? static_cast<uint64_t>(k) : 0;
  }
  __device__ __forceinline__ bool restricts() const { return top_k > 0 || top_p < 1; }
  __device__ __forceinline__ float exponent(float logit) const { return (logit - top) * scale; }
  __device__ __forceinline__ uint64_t weight(float logit) const {
    const float x = exponent(logit);
    return x < kSmallest ? 0 : __float2ull_rn(fast_exp2(x) * kOne);
  }
  // Bins in descending order of logits; the last bin has all the rest.
  __device__ __forceinline__ int bin(float logit) const {
    const float at = -exponent(logit) * kBinsPerHalving;
    return at < kBins - 1 ? static_cast<int>(at) : kBins - 1;
  }
  // A lower bound of the weight of the logits in the bin.
  __device__ __forceinline__ static uint64_t least_weight(int bin) {
    if (bin >= kBins - 1) return 0;
    const float least = exp2f(-static_cast<float>(bin + 1) / kBinsPerHalving) * 0.9999f;
    return __float2ull_rd(least * kOne) - (least * kOne > 2 ? 1 : 0);
  }
  // A sum of weights exceeds this as soon as it is at least top_p of all.
  __device__ __forceinline__ uint64_t mass_target(uint64_t all) const {
    const double wanted = ceil(top_p * static_cast<double>(all));
    return wanted > 1 ? static_cast<uint64_t>(wanted) - 1 : 0;
  }
};

// Sorts the list, whose length is a power of two, in rising order.
__device__ void sort_ranks(Rank* list, int length) {
  for (int size = 2; size <= length; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < length / 2; i += kThreads) {
        const int low = 2 * i - (i & (distance - 1)), high = low + distance;
        const Rank a = list[low], b = list[high];
        if ((a > b) == ((low & size) == 0)) {
          list[low] = b;
          list[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

// The last bin that may have a kept id, in every thread. `all`: total weight of the row; unused if
// top_k restricts.
__device__ int last_bin_of(Shared& s, const Rule& rule, uint64_t all) {
  const int bin = threadIdx.x;
  const uint64_t count = s.counts[bin];
  const bool by_count = rule.top_k > 0;
  const uint64_t value = by_count ? count : count * Rule::least_weight(bin);
  const uint64_t target = by_count ? rule.top_k - 1 : rule.mass_target(all);
  if (bin == 0) s.last_bin = kBins - 1;
  const uint64_t sum = block_sums(s, value);
  if (sum > target && sum - value <= target) s.last_bin = bin;
  __syncthreads();
  return s.last_bin;
}

// The last rank kept of a list of the most likely ids, which has room for kMostListed.
__device__ Rank border_of_list(Shared& s, const Rule& rule, Rank* list, int count, uint64_t all) {
  int length = 1;
  while (length < count) length *= 2;
  for (int i = count + static_cast<int>(threadIdx.x); i < length; i += kThreads) list[i] = kNoRank;
  sort_ranks(list, length);
  int kept = count;
  if (rule.top_k > 0 && rule.top_k < static_cast<uint64_t>(count))
    kept = static_cast<int>(rule.top_k);
  if (rule.top_p < 1) {
    const int share = (kept + kThreads - 1) / kThreads;
    const int begin = min(static_cast<int>(threadIdx.x) * share, kept);
    const int end = min(begin + share, kept);
    uint64_t mine = 0;
    for (int i = begin; i < end; ++i) mine += rule.weight(logit_of(list[i]));
    const uint64_t whole = rule.top_k > 0 ? block_total(s, mine) : all;
    const uint64_t target = rule.mass_target(whole);
    if (threadIdx.x == 0) s.chosen = kept;
    uint64_t sum = block_sums(s, mine) - mine;
    __syncthreads();
    if (sum <= target && sum + mine > target) {
      int i = begin;
      while ((sum += rule.weight(logit_of(list[i]))) <= target) ++i;
      s.chosen = i + 1;
    }
    __syncthreads();
    kept = s.chosen;
  }
  return list[kept - 1];
}

// The first rank at which the cumulative weight (by_count: number) of the ids up to `border`
// exceeds the target; the last rank if it never does. For rows whose ids do not fit the list: reads
// the row repeatedly.
template <class T>
__device__ __noinline__ Rank find_rank(Shared& s, Logits<T> logits, Rule rule, bool by_count,
                                       Rank border, uint64_t target) {
  Rank low = 0, high = kLastRank;
  while (low < high) {
    const Rank step = max((high - low) / kWays, Rank{1});
    uint64_t sums[kWays - 1] = {};
    logits.each([&](float logit, int id) {
      const Rank rank = rank_of(logit, id);
      if (rank > border || rank > high) return;
      const uint64_t value = by_count ? 1 : rule.weight(logit);
#pragma unroll
      for (int way = 0; way < kWays - 1; ++way)
        sums[way] += rank < low + (way + 1) * step ? value : 0;
    });
    __syncthreads();
#pragma unroll
    for (int way = 0; way < kWays - 1; ++way) {
      const uint64_t sum = warp_total(sums[way]);
      if (threadIdx.x % 32 == 0) s.sums[threadIdx.x / 32][way] = sum;
    }
    __syncthreads();
    Rank from = low + (kWays - 1) * step, to = high;
    for (int way = kWays - 2; way >= 0; --way) {
      uint64_t sum = 0;
      for (int warp = 0; warp < kWarps; ++warp) sum += s.sums[warp][way];
      if (sum > target) {
        from = low + way * step;
        to = from + step - 1;
      }
    }
    low = min(from, high);
    high = min(to, high);
  }
  return low;
}

// The last rank kept of a row whose most likely ids do not fit the list. This function and
// find_rank() are not inlined and take copies: the kernel then compiles in half the time, and the
// path for rows that fit the list keeps its registers.
template <class T>
__device__ __noinline__ Rank border_of_row(Shared& s, Logits<T> logits, Rule rule, uint64_t all) {
  Rank border = kNoRank;
  if (rule.top_k > 0) {
    border = find_rank(s, logits, rule, true, kNoRank, rule.top_k - 1);
    uint64_t mine = 0;
    logits.each([&](float logit, int id) {
      if (rank_of(logit, id) <= border) mine += rule.weight(logit);
    });
    all = block_total(s, mine);
  }
  if (rule.top_p < 1)
    border = min(border, find_rank(s, logits, rule, false, border, rule.mass_target(all)));
  return border;
}

// The last rank that is kept.
template <class T>
__device__ Rank border_of(Shared& s, const Logits<T>& logits, const Rule& rule, Rank* list) {
  s.counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) s.listed = 0;
  __syncthreads();
  uint64_t mine = 0;
  logits.each([&](float logit, int) {
    if (rule.top_k == 0) mine += rule.weight(logit);
    atomicAdd(&s.counts[rule.bin(logit)], 1u);
  });
  const uint64_t all = block_total(s, mine);
  const int last = last_bin_of(s, rule, all);
  const uint64_t count =
      block_total(s, static_cast<int>(threadIdx.x) <= last ? s.counts[threadIdx.x] : 0u);
  if (count <= kMostListed) {
    logits.each([&](float logit, int id) {
      if (rule.bin(logit) <= last) list[atomicAdd(&s.listed, 1u)] = rank_of(logit, id);
    });
    __syncthreads();
    return border_of_list(s, rule, list, static_cast<int>(count), all);
  }
  return border_of_row(s, logits, rule, all);
}

// The drawn id, in every thread. A warp sums a chunk of adjacent ids at a time.
template <class T>
__device__ int drawn_id(Shared& s, const Logits<T>& logits, const Rule& rule, Rank border,
                        double draw) {
  constexpr int kPass = 32 * kGroup;
  const int passes = static_cast<int>(ceil_div(logits.classes, int64_t{kChunks} * kPass));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto weights_of = [&](int column, uint64_t(&weights)[kGroup]) {
    uint64_t sum = 0;
    logits.each_of(logits.load(column), column, [&](float logit, int id) {
      const bool kept =
          rank_of(logit, id) <= border && fast_exp2(rule.exponent(logit)) >= rule.min_p;
      const uint64_t weight = kept ? rule.weight(logit) : 0;
      sum += weight;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) weights[j] = column + j == id ? weight : weights[j];
    });
    return sum;
  };
#pragma unroll 4
  for (int chunk = warp; chunk < kChunks; chunk += kWarps) {
    uint64_t mine = 0;
    for (int pass = 0; pass < passes; ++pass) {
      const int column = (chunk * passes + pass) * kPass + lane * kGroup;
      uint64_t weights[kGroup] = {};
      mine += weights_of(column, weights);
    }
    mine = warp_total(mine);
    if (lane == 0) s.masses[chunk] = mine;
  }
  __syncthreads();
  const uint64_t value = s.masses[threadIdx.x], all = block_total(s, value);
  const auto target = min(static_cast<uint64_t>(draw * static_cast<double>(all)), all - 1);
  const uint64_t sum = block_sums(s, value);
  if (sum > target && sum - value <= target) {
    s.chosen = threadIdx.x;
    s.target = target - (sum - value);
  }
  __syncthreads();
  const int chunk = s.chosen;
  uint64_t left = s.target;
  __syncthreads();
  if (warp == 0) {
    for (int pass = 0; pass < passes; ++pass) {
      const int column = (chunk * passes + pass) * kPass + lane * kGroup;
      uint64_t weights[kGroup] = {};
      const uint64_t mine = weights_of(column, weights);
      const uint64_t up_to = warp_sums(mine);
      if (up_to > left && up_to - mine <= left) {
        uint64_t so_far = up_to - mine;
        int j = 0;
        while ((so_far += weights[j]) <= left) ++j;
        s.chosen = column + j;
      }
      const uint64_t whole = __shfl_sync(kAllLanes, up_to, 31);
      if (whole > left) break;
      left -= whole;
    }
  }
  __syncthreads();
  return s.chosen;
}

template <class T>
__global__ void __launch_bounds__(kThreads) choose_rows(Choice<T> c) {
  extern __shared__ Rank list[];
  __shared__ Shared s;
  trigger_dependents();
  grid_dependency_wait();
  const int64_t row = blockIdx.x;
  if (threadIdx.x < 32) {
    Part part{kNoRank, kNothing, 0.0f};
    for (int i = threadIdx.x; i < c.parts; i += 32) {
      const Part other = c.found[row * c.parts + i];
      const float largest = fmaxf(part.largest, other.largest), origin = origin_of(largest);
      part.sum = part.sum * expf(part.largest - origin) + other.sum * expf(other.largest - origin);
      part.largest = largest;
      part.best = min(part.best, other.best);
    }
    part = merged(part);
    if (threadIdx.x == 0) s.row = part;
  }
  __syncthreads();
  const Part found = s.row;
  int id = id_of(found.best);
  if (found.best == kNoRank) {
    id = -1;
  } else if (c.option(row, ops::SamplingColumn::Temperature) > 0) {
    const Logits<T> logits(c, row);
    const Rule rule(c, row, found.best);
    const Rank border = rule.restricts() ? border_of(s, logits, rule, list) : kNoRank;
    id = drawn_id(s, logits, rule, border, ops::choice_draw(c.keys[2 * row], c.keys[2 * row + 1]));
  }
  if (threadIdx.x != 0) return;
  c.ids[row] = id;
  if (id < 0) {
    c.logprobs[row] = NAN;
    return;
  }
  c.logprobs[row] = to_float(c.logits[row * c.columns + id]) - (found.largest + logf(found.sum));
  if (c.seen != nullptr) c.seen[row * c.words + id / 32] |= static_cast<int32_t>(1u << (id % 32));
}

}  // namespace

void sample_tokens(Exec& ex, const ops::SampleTokens& c) {
  const int64_t rows = c.logits.rows();
  if (rows == 0) return;
  ArenaScope scope(ex.scratch);
  const Tensor parts = workspace_of(ex, c, "parts of rows");
  visit_cuda(c.logits.dtype, "sample_tokens", [&]<class T>() {
    const Choice<T> p{.logits = data_of<T>(c.logits),
                      .columns = c.logits.shape[1],
                      .classes = static_cast<int>(c.classes),
                      .words = static_cast<int>(ceil_div(c.classes, 32)),
                      .parts = static_cast<int>(choice_parts(c)),
                      .options = data_of<double>(c.options),
                      .keys = data_of<int64_t>(c.keys),
                      .seen = c.seen.present() ? data_of<int32_t>(c.seen) : nullptr,
                      .ids = data_of<int32_t>(c.ids),
                      .logprobs = data_of<float>(c.logprobs),
                      .found = data_of<Part>(parts),
                      .wide = are_wide(c.logits)};
    launch_programmatic("sample_tokens", look_at_part<T>,
                        dim3(static_cast<unsigned>(p.parts), static_cast<unsigned>(rows)),
                        kPartThreads, 0, stream_of(ex), p);
    launch_programmatic("sample_tokens", choose_rows<T>, dim3(static_cast<unsigned>(rows)),
                        kThreads, kMostListed * sizeof(Rank), stream_of(ex), p);
  });
}

}  // namespace bev::cuda
