#include "ops/cuda/activation_function.cuh"
#include "ops/cuda/early_launch.cuh"
#include "ops/cuda/few_row_product.h"
#include "ops/cuda/product_kind.h"
#include "ops/cuda/row_groups.cuh"
#include "ops/cuda/tensor_core.cuh"

namespace bev::cuda {

namespace {

// Eight rows of b are the columns of one fragment, the rows of a those of the other: 8 or, in two
// halves, 16. The order in which elements are summed is free, so that a lane takes eight adjacent
// ones of a row, kStep of them four lanes, where a fragment has pairs.
constexpr int kTileRows = 8, kStep = 4 * kGroup;
constexpr int64_t kMostRows = 16;
// Elements of a row of b that are asked for while the kernel before still runs. What all blocks
// that run at a time ask for fits the shared cache.
constexpr int kNearer = 2048;

template <class T, class Out>
struct FewRows {
  const T *a, *b, *bias;  // bias may be null, as may addend and pre_activation
  const Out* addend;
  Out *out, *pre_activation;
  int64_t a_row, b_row, addend_row, out_row, pre_activation_row;
  int rows, columns, depth;
  bool activates;
  Activation activation;
  bool b_is_settled;
};

struct alignas(kWideBytes) Words {
  uint32_t word[4] = {};
};

// Of a matrix that is read once: it takes no room in the nearest cache.
template <class T>
__device__ __forceinline__ Words load_once(const T* from) {
  Words w;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
               : "l"(__cvta_generic_to_global(from)));
  return w;
}

template <class T>
__device__ __forceinline__ Words load_again(const T* from) {
  return *reinterpret_cast<const Words*>(from);
}

__device__ __forceinline__ float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::GeluTanh: return Function<Activation::GeluTanh>(x).value;
    case Activation::GeluErf: return Function<Activation::GeluErf>(x).value;
    case Activation::Relu: return Function<Activation::Relu>(x).value;
    default: return Function<Activation::SquaredRelu>(x).value;
  }
}

template <class T, class Out>
__device__ __forceinline__ void finish(const FewRows<T, Out>& p, int row, int column, float value) {
  if (p.addend != nullptr) value += to_float(p.addend[row * p.addend_row + column]);
  if (p.bias != nullptr) value += to_float(p.bias[column]);
  if (p.activates) {
    const Out argument = from_float<Out>(value);
    if (p.pre_activation != nullptr)
      p.pre_activation[row * p.pre_activation_row + column] = argument;
    value = activated(p.activation, to_float(argument));
  }
  p.out[row * p.out_row + column] = from_float<Out>(value);
}

// A block has kTileRows rows of b, each of its warps a share of the depth: kAhead steps in turn, of
// which the next are on their way while the last are multiplied.
template <class T, class Out, int kHalves, int kAhead, int kWarps>
__global__ void __launch_bounds__(32 * kWarps) few_rows(FewRows<T, Out> p) {
  constexpr int kThreads = 32 * kWarps, kRows = kHalves * 8;
  __shared__ float parts[kWarps][kRows][kTileRows];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int line = lane / 4, place = lane % 4 * kGroup;
  const int first_column = blockIdx.x * kTileRows;

  const T* b = p.b + min(first_column + line, p.columns - 1) * p.b_row;
  Words of_b[kAhead], of_a[kHalves][kAhead];
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
        of_a[half][step] =
            row < p.rows && depth < p.depth ? load_again(p.a + row * p.a_row + depth) : Words{};
      }
    }
  };

  constexpr int kStride = kWarps * kAhead * kStep;
  int at = warp * kAhead * kStep;
  if (p.b_is_settled) {
    ask_b(at);
  } else if (threadIdx.x < kTileRows && first_column + static_cast<int>(threadIdx.x) < p.columns) {
    const T* row = p.b + (first_column + static_cast<int>(threadIdx.x)) * p.b_row;
    bring_nearer(row, static_cast<uint32_t>(min(p.depth, kNearer) * sizeof(T)));
  }
  let_successor_begin();
  wait_for_predecessors();
  if (!p.b_is_settled) ask_b(at);
  ask_a(at);

  float sums[4] = {};
  for (; at < p.depth; at += kStride) {
    Words now_b[kAhead], now_a[kHalves][kAhead];
#pragma unroll
    for (int step = 0; step < kAhead; ++step) {
      now_b[step] = of_b[step];
#pragma unroll
      for (int half = 0; half < kHalves; ++half) now_a[half][step] = of_a[half][step];
    }
    ask_b(at + kStride);
    ask_a(at + kStride);
#pragma unroll
    for (int step = 0; step < kAhead; ++step) {
#pragma unroll
      for (int pair = 0; pair < 4; pair += 2) {
        uint32_t rows[4] = {now_a[0][step].word[pair], 0, now_a[0][step].word[pair + 1], 0};
        if constexpr (kHalves == 2) {
          rows[1] = now_a[1][step].word[pair];
          rows[3] = now_a[1][step].word[pair + 1];
        }
        multiply_add<T>(sums, rows, now_b[step].word[pair], now_b[step].word[pair + 1]);
      }
    }
  }

  const int column = lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
    parts[warp][half * 8 + line][column] = sums[2 * half];
    parts[warp][half * 8 + line][column + 1] = sums[2 * half + 1];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < p.rows * kTileRows; i += kThreads) {
    const int row = i / kTileRows, of_tile = i % kTileRows;
    if (first_column + of_tile >= p.columns) continue;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += parts[w][row][of_tile];
    finish(p, row, first_column + of_tile, sum);
  }
}

// Measured in decode steps of models: many warps share what is deep or has few columns; where there
// are many columns of middling depth, fewer warps have more of it each.
template <class T, class Out>
void launch(Exec& ex, const FewRows<T, Out>& p) {
  const auto run = [&]<int kHalves, int kAhead, int kWarps>() {
    const auto blocks = static_cast<unsigned>(ceil_div(p.columns, kTileRows));
    launch_early("matmul", few_rows<T, Out, kHalves, kAhead, kWarps>, dim3(blocks), 32 * kWarps, 0,
                 stream_of(ex), p);
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

template <class T, class Out>
FewRows<T, Out> problem_of(const ops::Matmul& m) {
  return {.a = data_of<T>(m.a),
          .b = data_of<T>(m.b),
          .bias = m.bias.present() ? data_of<T>(m.bias) : nullptr,
          .addend = m.addend.present() ? data_of<Out>(m.addend) : nullptr,
          .out = data_of<Out>(m.out),
          .pre_activation = m.pre_activation.present() ? data_of<Out>(m.pre_activation) : nullptr,
          .a_row = m.a.stride[0],
          .b_row = m.b.stride[0],
          .addend_row = m.addend.stride[0],
          .out_row = m.out.stride[0],
          .pre_activation_row = m.pre_activation.stride[0],
          .rows = static_cast<int>(m.out.shape[0]),
          .columns = static_cast<int>(m.out.shape[1]),
          .depth = static_cast<int>(depth_of(m)),
          .activates = activates(m.epilogue),
          .activation = m.activation,
          .b_is_settled = m.b_is_settled};
}

template <class T>
void run(Exec& ex, const ops::Matmul& m) {
  if (m.out.dtype == DType::f32) {
    launch(ex, problem_of<T, float>(m));
  } else {
    launch(ex, problem_of<T, T>(m));
  }
}

}  // namespace

bool has_few_rows(const ops::Matmul& m) {
  const bool is_short = m.a.dtype == DType::bf16 || m.a.dtype == DType::f16;
  const int64_t depth = depth_of(m);
  return is_short && m.out.shape[0] <= kMostRows && m.ta == ops::Transpose::No &&
         m.tb == ops::Transpose::Yes && !m.accumulate && !m.dbias.present() &&
         m.epilogue != ops::Epilogue::ActivateBackward && depth > 0 && depth % kGroup == 0 &&
         depth < INT32_MAX / 2 && m.out.shape[1] < INT32_MAX / 2 && are_wide(m.a, m.b);
}

void few_row_product(Exec& ex, const ops::Matmul& m) {
  if (m.a.dtype == DType::bf16) {
    run<__nv_bfloat16>(ex, m);
  } else {
    run<__half>(ex, m);
  }
}

}  // namespace bev::cuda
