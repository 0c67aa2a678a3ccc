#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gemm/gemm_small_m_problem.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

constexpr int64_t kMostRows = 16;
// Elements of a row of b that are asked for while the kernel before still runs. What all blocks
// that run at a time ask for fits the shared cache.
constexpr int kNearer = 2048;

// Of a matrix that is read once: it takes no room in the nearest cache.
template <class T>
__device__ __forceinline__ Words load_once(const T* from) {
  Words w;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
               : "l"(__cvta_generic_to_global(from)));
  return w;
}

// A block has kTileRows rows of b, each of its warps a share of the depth: kAhead steps in turn, of
// which the next are on their way while the last are multiplied.
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

// Measured in decode steps of models: many warps share what is deep or has few columns; where there
// are many columns of middling depth, fewer warps have more of it each.
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

}  // namespace

bool fits_small_m(const ops::Matmul& m) { return m.out.shape[0] <= kMostRows && suits_few_rows(m); }

bool has_few_normed_rows(const ops::Matmul& m) { return fits_small_m(m) && fits_small_m_smem(m); }

void gemm_small_m(Exec& ex, const ops::Matmul& m) {
  if (fits_small_m_smem(m)) return gemm_small_m_smem(ex, m);
  visit_few_rows(m, [&]<class T, class Out>() { launch(ex, SmallMProblem<T, Out>::of(m)); });
}

}  // namespace bev::cuda
