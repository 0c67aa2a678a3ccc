// Common parts of the small-M GEMM kernels. A warp multiplies rows of a with eight rows of b: the
// rows of b are the columns of one fragment, the rows of a are the rows of the other (8, or 16 in
// two halves). Elements may be summed in any order: a lane therefore takes eight adjacent elements
// of a row, four lanes kStep elements, where a fragment would have pairs.
#pragma once

#include "ops/cuda/elementwise/elementwise.cuh"
#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gemm/gemm_key.h"
#include "ops/cuda/primitives/mma.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/matmul.h"

namespace bev::cuda {

constexpr int kTileRows = 8, kStep = 4 * kGroup;

template <class T, class Out>
struct SmallMProblem {
  const T *a, *b, *bias;  // bias, addend and pre_activation may be null
  const Out* addend;
  Out *out, *pre_activation;
  int64_t a_row, b_row, addend_row, out_row, pre_activation_row;
  int rows, columns, depth;
  bool activates;
  Activation activation;
  bool b_is_constant;
  const T *norm_weight, *norm_bias;  // null without a norm; norm_bias is optional
  float eps;
  bool is_centred;
  bool finishes_wide;  // the operands of finish_group() are aligned

  static SmallMProblem of(const ops::Matmul& m, const InferenceWeights& weights) {
    const ops::FusedNorm& norm = weights.norm;
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
            .activates = cuda::activates(m.epilogue),
            .activation = m.activation,
            .b_is_constant = weights.constant,
            .norm_weight = norm.present() ? data_of<T>(norm.weight) : nullptr,
            .norm_bias = norm.bias.present() ? data_of<T>(norm.bias) : nullptr,
            .eps = static_cast<float>(norm.eps),
            .is_centred = norm.kind == NormKind::LayerNorm,
            .finishes_wide = are_wide(m.bias, m.addend, m.out, m.pre_activation)};
  }
};

// Whether these kernels can read the operands, for any number of rows.
inline bool suits_few_rows(const ops::Matmul& m) {
  const bool is_short = m.a.dtype == DType::bf16 || m.a.dtype == DType::f16;
  const int64_t depth = depth_of(m);
  return is_short && m.ta == ops::Transpose::No && m.tb == ops::Transpose::Yes && !m.accumulate &&
         !m.dbias.present() && m.epilogue != ops::Epilogue::ActivateBackward && depth > 0 &&
         depth % kGroup == 0 && depth < INT32_MAX / 2 && m.out.shape[1] < INT32_MAX / 2 &&
         are_wide(m.a, m.b);
}

// Calls f.template operator()<T, Out>() with the types of m's operands and of its result.
template <class F>
void visit_few_rows(const ops::Matmul& m, F&& f) {
  const auto with = [&]<class T>() {
    if (m.out.dtype == DType::f32) {
      f.template operator()<T, float>();
    } else {
      f.template operator()<T, T>();
    }
  };
  if (m.a.dtype == DType::bf16) {
    with.template operator()<__nv_bfloat16>();
  } else {
    with.template operator()<__half>();
  }
}

struct alignas(kWideBytes) Words {
  uint32_t word[4] = {};
};

template <class T>
__device__ __forceinline__ Words load_words(const T* from) {
  return *reinterpret_cast<const Words*>(from);
}

// sums += a b for one step of eight or, with kHalves == 2, sixteen rows of a.
template <class T, int kHalves>
__device__ __forceinline__ void multiply_step(float (&sums)[4], const Words (&a)[kHalves],
                                              const Words& b) {
#pragma unroll
  for (int pair = 0; pair < 4; pair += 2) {
    uint32_t rows[4] = {a[0].word[pair], 0, a[0].word[pair + 1], 0};
    if constexpr (kHalves == 2) {
      rows[1] = a[1].word[pair];
      rows[3] = a[1].word[pair + 1];
    }
    multiply_add<T>(sums, rows, b.word[pair], b.word[pair + 1]);
  }
}

__device__ __forceinline__ float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::GeluTanh: return Function<Activation::GeluTanh>(x).value;
    case Activation::GeluErf: return Function<Activation::GeluErf>(x).value;
    case Activation::Relu: return Function<Activation::Relu>(x).value;
    case Activation::Tanh: return Function<Activation::Tanh>(x).value;
    default: return Function<Activation::SquaredRelu>(x).value;
  }
}

template <class T, class Out>
__device__ __forceinline__ void finish(const SmallMProblem<T, Out>& p, int row, int column,
                                       float value) {
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

// As finish(), for kGroup columns from `column`; columns outside out are ignored.
template <class T, class Out>
__device__ __forceinline__ void finish_group(const SmallMProblem<T, Out>& p, int row, int column,
                                             float (&values)[kGroup]) {
  const bool wide = p.finishes_wide;
  const auto add = [&](const auto& group) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] += group[j];
  };
  if (p.addend != nullptr) add(load_group(p.addend + row * p.addend_row, column, p.columns, wide));
  if (p.bias != nullptr) add(load_group(p.bias, column, p.columns, wide));
  if (p.activates) {
    const auto argument = Group<Out>::of(values);
    if (p.pre_activation != nullptr) {
      store_group(argument, p.pre_activation + row * p.pre_activation_row, column, p.columns, wide);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) values[j] = activated(p.activation, argument[j]);
  }
  store_group(Group<Out>::of(values), p.out + row * p.out_row, column, p.columns, wide);
}

// Adds up the sums of the warps of a block and stores the result. All threads of the block call
// put() and finish_all().
template <int kRows, int kColumns, int kWarps>
struct BlockSums {
  float parts[kWarps][kRows][kColumns];

  __device__ __forceinline__ void put(int warp, int lane, int half, int tile,
                                      const float (&sums)[4]) {
    const int row = half * 8 + lane / 4, column = tile * kTileRows + lane % 4 * 2;
    parts[warp][row][column] = sums[2 * half];
    parts[warp][row][column + 1] = sums[2 * half + 1];
  }
  template <class T, class Out>
  __device__ __forceinline__ void finish_all(const SmallMProblem<T, Out>& p, int first_column) {
    __syncthreads();
    for (int i = threadIdx.x; i < p.rows * kColumns; i += 32 * kWarps) {
      const int row = i / kColumns, column = i % kColumns;
      if (first_column + column >= p.columns) continue;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += parts[w][row][column];
      finish(p, row, first_column + column, sum);
    }
  }
};

}  // namespace bev::cuda
