#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gemm/gemm_small_m_problem.cuh"
#include "ops/cuda/primitives/cp_async.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

constexpr int64_t kMostRows = 16;
// Elements of a row of b that are prefetched while the previous kernel still runs. The prefetches
// of all concurrent blocks fit the L2 cache.
constexpr int kNearer = 2048;

// Loads from a matrix that is read once, without allocating in L1.
template <class T>
__device__ __forceinline__ Words load_once(const T* from) {
  Words w;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
               : "l"(__cvta_generic_to_global(from)));
  return w;
}

// A block has kTileRows rows of b, each of its warps a share of the depth. A warp takes kAhead
// steps at a time: it loads the next ones while it multiplies the current ones.
template <class T, class Out, int kHalves, int kAhead, int kWarps>
__global__ void __launch_bounds__(32 * kWarps) few_rows(SmallMProblem<T, Out> p) {
  __shared__ BlockSums<kHalves * 8, kTileRows, kWarps> block_sums;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int line = lane / 4, place = lane % 4 * kGroup;
  const int first_column = blockIdx.x * kTileRows;

  const T* b = p.b + min(first_column + line, p.columns - 1) * p.b_row;
  Words of_b[kAhead], of_a[kAhead][kHalves];
  const auto ask_b = [&](int at) {
#pragma unroll
    for (int step = 0; step < kAhead; ++step) {
      const int depth = at + step * kStep + place;
      of_b[step] = depth < p.depth ? load_once(b + depth) : Words{};
    }
  };
  const auto ask_a = [&](int at) {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      const int row = half * 8 + line;
#pragma unroll
      for (int step = 0; step < kAhead; ++step) {
        const int depth = at + step * kStep + place;
        of_a[step][half] =
            row < p.rows && depth < p.depth ? load_words(p.a + row * p.a_row + depth) : Words{};
      }
    }
  };

  constexpr int kStride = kWarps * kAhead * kStep;
  int at = warp * kAhead * kStep;
  if (p.b_is_constant) {
    ask_b(at);
  } else if (threadIdx.x < kTileRows && first_column + static_cast<int>(threadIdx.x) < p.columns) {
    const T* row = p.b + (first_column + static_cast<int>(threadIdx.x)) * p.b_row;
    bring_nearer(row, static_cast<uint32_t>(min(p.depth, kNearer) * sizeof(T)));
  }
  trigger_dependents();
  grid_dependency_wait();
  if (!p.b_is_constant) ask_b(at);
  ask_a(at);

  float sums[4] = {};
  for (; at < p.depth; at += kStride) {
    Words now_b[kAhead], now_a[kAhead][kHalves];
#pragma unroll
    for (int step = 0; step < kAhead; ++step) {
      now_b[step] = of_b[step];
#pragma unroll
      for (int half = 0; half < kHalves; ++half) now_a[step][half] = of_a[step][half];
    }
    ask_b(at + kStride);
    ask_a(at + kStride);
#pragma unroll
    for (int step = 0; step < kAhead; ++step) multiply_step<T>(sums, now_a[step], now_b[step]);
  }
#pragma unroll
  for (int half = 0; half < kHalves; ++half) block_sums.put(warp, lane, half, 0, sums);
  block_sums.finish_all(p, first_column);
}

// Measured in decode steps of models: many warps share a deep matrix or one with few columns; with
// many columns of moderate depth, fewer warps take more of the depth each.
template <class T, class Out>
void launch(Exec& ex, const SmallMProblem<T, Out>& p) {
  const auto run = [&]<int kHalves, int kAhead, int kWarps>() {
    const auto blocks = static_cast<unsigned>(ceil_div(p.columns, kTileRows));
    launch_programmatic("matmul", few_rows<T, Out, kHalves, kAhead, kWarps>, dim3(blocks),
                        32 * kWarps, 0, stream_of(ex), p);
  };
  constexpr int64_t kMiddling = 64, kManyColumns = 4096;
  const int64_t steps = ceil_div(p.depth, kStep);
  if (p.rows > 8) {
    run.template operator()<2, 2, 16>();
  } else if (steps <= 2 * 16) {
    run.template operator()<1, 2, 16>();
  } else if (steps <= kMiddling && p.columns >= kManyColumns) {
    run.template operator()<1, 4, 4>();
  } else if (steps > kMiddling && steps <= 6 * 16) {
    run.template operator()<1, 6, 16>();
  } else {
    run.template operator()<1, 4, 16>();
  }
}

// Small M in shared memory: at most eight rows, or one row that every block normalises, times a
// matrix of limited depth. A block keeps whole rows of the matrix in shared memory, which arrive
// while earlier kernels still run. Shared memory holds more of a matrix than registers do, so that
// little is left to wait for.

constexpr int kMostStagedRows = 8;

// Row stride in shared memory: reading 64 bytes of each of eight rows has no bank conflicts.
template <class T>
constexpr int row_stride(int depth) {
  constexpr int kBanks = 128 / sizeof(T);
  return (depth + kBanks - 1) / kBanks * kBanks + kBanks / 2;
}

// Normalises the row of a, with at most one group of columns per thread. Every block does so
// itself, which takes less time than another kernel would.
template <class T, int kWarps>
struct RowNormer {
  Group<T> weight, bias;

  __device__ __forceinline__ static int column() { return static_cast<int>(threadIdx.x) * kGroup; }
  template <class Out>
  __device__ __forceinline__ void load(const SmallMProblem<T, Out>& p) {
    if (column() >= p.depth) return;
    weight = load_wide(p.norm_weight + column());
    if (p.norm_bias != nullptr) bias = load_wide(p.norm_bias + column());
  }
  // Sum over the block.
  __device__ __forceinline__ static float sum(float value, float (&shared)[kWarps]) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      value += __shfl_xor_sync(kAllLanes, value, distance);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float all = 0;
#pragma unroll
    for (const float of_warp : shared) all += of_warp;
    return all;
  }
  template <class Out>
  __device__ __forceinline__ void run(const SmallMProblem<T, Out>& p, T* to,
                                      float (&shared)[2][kWarps]) const {
    const float per_depth = 1.0f / static_cast<float>(p.depth);
    const bool has = column() < p.depth;
    const Group<T> x = has ? load_wide(p.a + column()) : Group<T>{};
    float mean = 0, squares = 0;
    if (p.is_centred) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) mean += x[j];
      mean = sum(mean, shared[0]) * per_depth;
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const float d = has ? x[j] - mean : 0.0f;
      squares += d * d;
    }
    const float rstd = rsqrtf(sum(squares, shared[1]) * per_depth + p.eps);
    if (!has) return;
    float y[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
    *reinterpret_cast<Group<T>*>(to + column()) = Group<T>::of(y);
  }
};

// A block has kTiles * kTileRows rows of b; its warps take the steps of a row in turn, at most
// kSteps each.
template <class T, class Out, int kSteps, int kWarps, int kTiles, bool kNorm>
__global__ void __launch_bounds__(32 * kWarps) staged(SmallMProblem<T, Out> p) {
  constexpr int kColumns = kTiles * kTileRows;
  static_assert(!kNorm || kSteps * kStep <= 32 * kGroup);  // a group for each thread
  extern __shared__ __align__(128) unsigned char dynamic[];
  __shared__ Arrival arrival;
  __shared__ BlockSums<kMostStagedRows, kColumns, kWarps> block_sums;
  __shared__ float norm_sums[2][kWarps];
  const int stride = row_stride<T>(p.depth);
  T* const b = reinterpret_cast<T*>(dynamic);
  T* const normed = b + kColumns * stride;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int line = lane / 4, place = lane % 4 * kGroup;
  const int first_column = blockIdx.x * kColumns;

  const auto ask_b = [&] {
    if (warp != 0) return;
    const auto bytes = static_cast<uint32_t>(p.depth * sizeof(T));
    if (lane == 0) arrival.expect(kColumns * bytes);
    __syncwarp();
    if (lane < kColumns) {
      const T* row = p.b + min(first_column + lane, p.columns - 1) * p.b_row;
      arrival.copy(b + lane * stride, row, bytes);
    }
  };
  RowNormer<T, kWarps> normer;
  if (p.b_is_constant) ask_b();
  if constexpr (kNorm) {
    if (p.b_is_constant) normer.load(p);
  }
  trigger_dependents();
  grid_dependency_wait();
  if (!p.b_is_constant) ask_b();
  if constexpr (kNorm) {
    if (!p.b_is_constant) normer.load(p);
    normer.run(p, normed, norm_sums);
  }
  __syncthreads();

  Words a[kSteps][1];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int depth = (step * kWarps + warp) * kStep + place;
    if (line >= p.rows || depth >= p.depth) continue;
    a[step][0] = load_words(kNorm ? normed + depth : p.a + line * p.a_row + depth);
  }
  arrival.wait();
  float sums[kTiles][4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int depth = (step * kWarps + warp) * kStep + place;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const T* row = b + (tile * kTileRows + line) * stride;
      const Words of_b = depth < p.depth ? load_words(row + depth) : Words{};
      multiply_step<T>(sums[tile], a[step], of_b);
    }
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) block_sums.put(warp, lane, 0, tile, sums[tile]);
  block_sums.finish_all(p, first_column);
}

template <class T, class Out, int kSteps, int kWarps, int kTiles, bool kNorm>
struct Shape {
  static constexpr auto kKernel = staged<T, Out, kSteps, kWarps, kTiles, kNorm>;

  static void launch(Exec& ex, const SmallMProblem<T, Out>& p) {
    constexpr int kColumns = kTiles * kTileRows;
    const size_t rows = kColumns + (kNorm ? 1 : 0);
    launch_programmatic("matmul", kKernel,
                        dim3(static_cast<unsigned>(ceil_div(p.columns, kColumns))), 32 * kWarps,
                        rows * row_stride<T>(p.depth) * sizeof(T), stream_of(ex), p);
  }
};

// Measured in decode steps of models: with a norm, two tiles share its cost, and eight warps leave
// room for the warps of other kernels; deep matrices get the maximum number of warps.
constexpr int kShallowDepth = 4 * 8 * kStep, kMiddlingDepth = 8 * 8 * kStep,
              kDeepDepth = 8 * 16 * kStep;

template <class T, class Out>
void run_shape(Exec& ex, const SmallMProblem<T, Out>& p) {
  if (p.norm_weight == nullptr) {
    Shape<T, Out, 8, 16, 1, false>::launch(ex, p);
  } else if (p.depth <= kShallowDepth) {
    Shape<T, Out, 4, 8, 2, true>::launch(ex, p);
  } else {
    Shape<T, Out, 8, 8, 2, true>::launch(ex, p);
  }
}

// Whether gemm_small_m_smem() can compute m, with the norm if present. REQUIRES: fits_small_m(m).
bool fits_small_m_smem(const ops::Matmul& m, const ops::FusedNorm& norm) {
  const int64_t rows = m.out.shape[0], depth = depth_of(m);
  const auto kernel = staged<__nv_bfloat16, float, 8, 8, 2, true>;
  if (norm.present()) {
    return rows == 1 && depth <= kMiddlingDepth && are_wide(norm.weight, norm.bias) &&
           knows_sm90("matmul", kernel);
  }
  return rows <= kMostStagedRows && depth > kMiddlingDepth && depth <= kDeepDepth &&
         knows_sm90("matmul", kernel);
}

// As gemm_small_m(). REQUIRES: fits_small_m_smem(m, weights.norm).
void gemm_small_m_smem(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights) {
  visit_few_rows(
      m, [&]<class T, class Out>() { run_shape(ex, SmallMProblem<T, Out>::of(m, weights)); });
}

}  // namespace

bool fits_small_m(const ops::Matmul& m) { return m.out.shape[0] <= kMostRows && suits_few_rows(m); }

bool fits_small_m(const ops::Matmul& m, const ops::FusedNorm& norm) {
  return fits_small_m(m) && fits_small_m_smem(m, norm);
}

void gemm_small_m(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights) {
  if (fits_small_m_smem(m, weights.norm)) return gemm_small_m_smem(ex, m, weights);
  visit_few_rows(m,
                 [&]<class T, class Out>() { launch(ex, SmallMProblem<T, Out>::of(m, weights)); });
}

}  // namespace bev::cuda
