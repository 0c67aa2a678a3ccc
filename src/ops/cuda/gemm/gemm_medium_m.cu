#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gemm/gemm_small_m_problem.cuh"
#include "ops/cuda/primitives/cluster.cuh"
#include "ops/cuda/primitives/cp_async.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/wgmma.cuh"

namespace bev::cuda {

namespace {

// A block is one warp group, which has kColumns rows of b, the columns of out, and all rows of a.
// It has a multiprocessor for itself: what it multiplies comes through a ring of stages,
// kStageDepth elements of each row, that fills most of its shared memory, also while kernels before
// it still run. The depth may be shared by a cluster, whose blocks send each other their sums: each
// finishes some columns.
constexpr int kThreads = 128, kRows = 64, kColumns = 64, kStageDepth = 64, kStages = 12;
constexpr int kChunks = kStageDepth / kGroup;  // of 16 bytes, in a row of a stage
constexpr int kTiles = kColumns / 8;
constexpr int kStageElements = (kRows + kColumns) * kStageDepth;
constexpr size_t kRingBytes = size_t{kStages} * kStageElements * 2;

// In the memory of the ring, once it is no longer needed: the sums of the whole cluster for a
// block, [split, row, column], with room between rows, which would else meet in the same banks.
constexpr int kSumGap = 8;
static_assert(kRingBytes >= kRows * (kColumns + kMostClusterBlocks * kSumGap) * sizeof(float));

// Code that does not know GEMMs of warp groups says so by how few threads it takes.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kMostThreads = kThreads;
#else
constexpr int kMostThreads = 32;
#endif

template <class T, class Out>
__global__ void __launch_bounds__(kMostThreads, 1)
    mid_rows(SmallMProblem<T, Out> p, int splits, int share) {
  extern __shared__ __align__(1024) unsigned char dynamic[];
  T* const ring = reinterpret_cast<T*>(dynamic);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int split = blockIdx.x % splits, first_column = blockIdx.x / splits * kColumns;
  const int begin = split * share, end = min(p.depth, begin + share);
  const int stages = (max(0, end - begin) + kStageDepth - 1) / kStageDepth;

  // A thread copies one chunk of every kRowsAtOnce-th row, which is at one place in all of them.
  constexpr int kRowsAtOnce = kThreads / kChunks;
  static_assert(kRowsAtOnce % 8 == 0);
  const int chunk = threadIdx.x % kChunks, first_row = threadIdx.x / kChunks;
  const int place = first_row * kStageDepth + (chunk ^ first_row % 8) * kGroup;
  const int my_depth = end - begin - chunk * kGroup;
  const T* const from_b = p.b + (first_column + first_row) * p.b_row + begin + chunk * kGroup;
  const T* const from_a = p.a + first_row * p.a_row + begin + chunk * kGroup;
  const auto tile_of_a = [&](int stage) { return ring + stage % kStages * kStageElements; };
  const auto tile_of_b = [&](int stage) { return tile_of_a(stage) + kRows * kStageDepth; };
  static_assert(kColumns == kRows);
  const auto ask = [&](int stage, T* tile, const T* from, int64_t row_length, int rows) {
    const bool inside = stage * kStageDepth < my_depth;
#pragma unroll
    for (int row = 0; row < kRows; row += kRowsAtOnce) {
      copy_async<16>(tile + place + row * kStageDepth,
                     from + row * row_length + stage * kStageDepth,
                     inside && first_row + row < rows);
    }
  };
  const auto ask_a = [&](int stage) { ask(stage, tile_of_a(stage), from_a, p.a_row, p.rows); };
  const auto ask_b = [&](int stage) {
    ask(stage, tile_of_b(stage), from_b, p.b_row, p.columns - first_column);
  };

  constexpr int kAhead = kStages - 2;  // stages: one is being multiplied, the last one still read
  const int first_stages = min(stages, kAhead);
  if (p.b_is_constant) {
    for (int stage = 0; stage < first_stages; ++stage) ask_b(stage);
  }
  trigger_dependents();
  grid_dependency_wait();
  for (int stage = 0; stage < kAhead; ++stage) {
    if (stage < first_stages) {
      if (!p.b_is_constant) ask_b(stage);
      ask_a(stage);
    }
    end_batch();
  }

  float sums[kTiles][4] = {};
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_batches<kAhead - 1>();
    fence_proxy_async();
    __syncthreads();
    wgmma_fence();
#pragma unroll
    for (int depth = 0; depth < kStageDepth; depth += 16) {
      group_multiply_add<T>(sums, group_operand(tile_of_a(stage) + depth),
                            group_operand(tile_of_b(stage) + depth));
    }
    wgmma_commit_group();
    // All warps are done with the stage before the last one.
    if (stage + kAhead < stages) {
      ask_b(stage + kAhead);
      ask_a(stage + kAhead);
    }
    end_batch();
    wgmma_wait_group<1>();
  }
  wgmma_wait_group<0>();

  // The tiles of eight columns are dealt to the blocks of the cluster; each gets the sums of all.
  const int tiles_each = (kTiles + splits - 1) / splits;
  const int row_length = tiles_each * 8 + kSumGap;
  float* const all_sums = reinterpret_cast<float*>(ring);
  const auto meet = [&] {
    if (splits == 1) return __syncthreads();
    announce_to_cluster();
    wait_for_cluster();
  };
  meet();  // nobody needs the ring any more
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    const int owner = j % splits, within = j / splits * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp * 16 + half * 8 + lane / 4;
      auto* to = reinterpret_cast<float2*>(all_sums + (split * kRows + row) * row_length + within);
      const float2 two = make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
      if (splits > 1) {
        store_in_block(to, owner, two);
      } else {
        *to = two;
      }
    }
  }
  meet();
  const int my_tiles = (kTiles - split + splits - 1) / splits;
  for (int e = threadIdx.x; e < p.rows * my_tiles; e += kThreads) {
    const int row = e / my_tiles, tile = e - row * my_tiles;
    const int column = first_column + (tile * splits + split) * 8;
    if (column >= p.columns) continue;
    float values[kGroup] = {};
    for (int s = 0; s < splits; ++s) {
      const auto* from =
          reinterpret_cast<const float4*>(all_sums + (s * kRows + row) * row_length + tile * 8);
      const float4 low = from[0], high = from[1];
      values[0] += low.x, values[1] += low.y, values[2] += low.z, values[3] += low.w;
      values[4] += high.x, values[5] += high.y, values[6] += high.z, values[7] += high.w;
    }
    finish_group(p, row, column, values);
  }
  static_assert(kGroup == 8);
}

// Into how many blocks the depth is cut, where each block has a multiprocessor for itself; 0 if
// there are not so many. Clusters find room on almost all multiprocessors, not on all.
int splits_for(int64_t columns, int64_t depth, int64_t multiprocessors) {
  const int64_t tiles = ceil_div(columns, kColumns), stages = ceil_div(depth, kStageDepth);
  if (tiles > multiprocessors) return 0;
  constexpr int64_t kSpare = 4;
  int splits = 1;
  while (splits * 2 <= kMostClusterBlocks && splits * 2 <= stages &&
         tiles * splits * 2 <= multiprocessors - kSpare)
    splits *= 2;
  return splits;
}
int splits_for(Exec& ex, const ops::Matmul& m) {
  return splits_for(m.out.shape[1], depth_of(m), gpu_of(ex).multiprocessors());
}

template <class T, class Out>
void launch(Exec& ex, const SmallMProblem<T, Out>& p, int splits) {
  const int64_t stages = ceil_div(p.depth, kStageDepth);
  const int64_t blocks = ceil_div(p.columns, kColumns) * splits;
  launch_clusters("matmul", mid_rows<T, Out>, splits, dim3(static_cast<unsigned>(blocks)), kThreads,
                  kRingBytes, stream_of(ex), p, splits,
                  static_cast<int>(ceil_div(stages, splits) * kStageDepth));
}

// Whether the code that serves knows GEMMs of warp groups.
bool has_wgmma() {
#ifdef BEV_HAS_SM90A
  cudaFuncAttributes facts{};
  check_cuda(cudaFuncGetAttributes(&facts, mid_rows<__nv_bfloat16, float>), "matmul");
  return facts.maxThreadsPerBlock >= kThreads;
#else
  return false;
#endif
}

}  // namespace

bool fits_medium_m(Exec& ex, const ops::Matmul& m) {
  // Measured in decode steps of models: with larger matrices the library is as fast or faster.
  constexpr int64_t kMostElements = int64_t{4} << 20;
  return m.out.shape[0] <= kRows && m.out.shape[1] * depth_of(m) <= kMostElements &&
         suits_few_rows(m) && has_wgmma() && splits_for(ex, m) > 0;
}

void gemm_medium_m(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights) {
  const int splits = splits_for(ex, m);
  visit_few_rows(
      m, [&]<class T, class Out>() { launch(ex, SmallMProblem<T, Out>::of(m, weights), splits); });
}

}  // namespace bev::cuda
