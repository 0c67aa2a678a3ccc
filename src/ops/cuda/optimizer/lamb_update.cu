// The two passes of LAMB, one block per chunk, and the small kernels between them.
#include "ops/cuda/optimizer/flat_groups.cuh"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

using flat::kGroup;
using flat::kThreads;
using flat::kTurn;
using flat::load;
using flat::store;

constexpr int kWarps = kThreads / 32;
constexpr int kRatioThreads = 128;

// LambFactors and LambRule in f32, shared by a block.
struct Scalars {
  float gradient, beta1, beta2, rest1, rest2, first, root_correction2, eps;
  float rate, decay, coupled_decay;
};

// Two warps, so that the powers, which take as long as a turn, are computed at once.
__device__ Scalars block_scalars(const LambRule& rule, const double* decision, bool decays) {
  __shared__ Scalars shared;
  if (threadIdx.x == 0) {
    LambRule no_second = rule;
    no_second.corrects_second = false;
    const LambFactors f = lamb_factors(no_second, decision, decays);
    shared.gradient = static_cast<float>(f.gradient);
    shared.beta1 = static_cast<float>(rule.beta1);
    shared.beta2 = static_cast<float>(rule.beta2);
    shared.rest1 = static_cast<float>(f.rest1);
    shared.rest2 = static_cast<float>(1 - rule.beta2);
    shared.first = static_cast<float>(f.first);
    shared.eps = static_cast<float>(rule.eps);
    shared.rate = static_cast<float>(f.rate);
    shared.decay = static_cast<float>(f.decay);
    shared.coupled_decay = static_cast<float>(f.coupled_decay);
  } else if (threadIdx.x == 32) {
    LambRule no_first = rule;
    no_first.corrects_first = false;
    shared.root_correction2 =
        static_cast<float>(lamb_factors(no_first, decision, decays).root_correction2);
  }
  __syncthreads();
  return shared;
}

__device__ __forceinline__ float direction(const Scalars& s, float moment, float square) {
  return s.first * moment / (sqrtf(square) / s.root_correction2 + s.eps);
}

// The chunk of this block.
struct Chunk {
  int64_t begin, row;
  int count;
  bool counts, wide;

  __device__ Chunk(const int64_t* table, bool aligned) {
    const int64_t* entry = table + int64_t{blockIdx.x} * ops::kChunkFields;
    begin = entry[ops::kChunkBegin];
    count = static_cast<int>(entry[ops::kChunkCount]);
    row = entry[ops::kChunkRow];
    counts = entry[ops::kChunkNorm] != 0;
    wide = aligned && begin % kGroup == 0;
  }
};

// Calls body.operator()<wide>(first element of the run, how many) for every group of the chunk.
template <class Body>
__device__ __forceinline__ void each_group_of(const Chunk& chunk, Body body) {
  for (int i = static_cast<int>(threadIdx.x) * kGroup; i < chunk.count; i += kTurn) {
    const int here = min(kGroup, chunk.count - i);
    if (chunk.wide && here == kGroup) {
      body.template operator()<true>(chunk.begin + i, kGroup);
    } else {
      body.template operator()<false>(chunk.begin + i, here);
    }
  }
}

// Writes the sums of the block's values, in a fixed order.
template <int kSums>
__device__ void write_block_sums(const double (&values)[kSums], bool counts, double* out) {
  __shared__ double of_warps[kSums][kWarps];
#pragma unroll
  for (int k = 0; k < kSums; ++k) {
    double value = values[k];
    for (int offset = 16; offset > 0; offset /= 2)
      value += __shfl_xor_sync(kAllLanes, value, offset);
    if (threadIdx.x % 32 == 0) of_warps[k][threadIdx.x / 32] = value;
  }
  __syncthreads();
  if (threadIdx.x >= kSums) return;
  double sum = 0;
  for (const double of_warp : of_warps[threadIdx.x]) sum += of_warp;
  out[threadIdx.x] = counts ? sum : 0;
}

template <class G>
struct MomentsRun {
  const float* weights;
  float *m, *v, *q;
  const G* grad;
  const double* decision;
  const int64_t* chunks;
  double* squares;
  LambRule rule;
  bool decays, aligned;
};

template <class G, bool kNoise>
__global__ void __launch_bounds__(kThreads) lamb_moments_kernel(const MomentsRun<G> a) {
  constexpr int kSums = kNoise ? 3 : 2;
  if (a.decision[kApplied] == 0) return;
  const Scalars s = block_scalars(a.rule, a.decision, a.decays);
  const Chunk chunk(a.chunks, a.aligned);
  double sums[kSums] = {};
  each_group_of(chunk, [&]<bool kWide>(int64_t begin, int count) {
    float w[kGroup], m[kGroup], v[kGroup], g[kGroup];
    [[maybe_unused]] float q[kGroup];
    load<kWide>(a.grad, begin, count, g);
    load<kWide>(a.weights, begin, count, w);
    load<kWide>(a.m, begin, count, m);
    load<kWide>(a.v, begin, count, v);
    if constexpr (kNoise) load<kWide>(a.q, begin, count, q);
    for (int e = 0; e < kGroup; ++e) {
      g[e] = fmaf(s.coupled_decay, w[e], g[e] * s.gradient);
      v[e] = fmaf(s.beta2, v[e], s.rest2 * g[e] * g[e]);
      float u;
      if constexpr (kNoise) {
        const float deviation = g[e] - m[e];
        q[e] = fmaf(s.beta2, q[e], s.rest2 * deviation * deviation);
        u = direction(s, m[e], v[e]);
        const auto noise = static_cast<double>(direction(s, deviation, q[e]));
        if (e < count) sums[2] += noise * noise;
      } else {
        m[e] = fmaf(s.beta1, m[e], s.rest1 * g[e]);
        u = fmaf(s.decay, w[e], direction(s, m[e], v[e]));
      }
      const auto wide_u = static_cast<double>(u), wide_w = static_cast<double>(w[e]);
      if (e < count) {
        sums[0] += wide_w * wide_w;
        sums[1] += wide_u * wide_u;
      }
    }
    store<kWide>(v, a.v, begin, count);
    if constexpr (kNoise) {
      store<kWide>(q, a.q, begin, count);
    } else {
      store<kWide>(m, a.m, begin, count);
    }
  });
  write_block_sums(sums, chunk.counts, a.squares + int64_t{blockIdx.x} * kSums);
}

// Block (i, c): the sum of a column over a segment.
__global__ void __launch_bounds__(kThreads)
    sum_segments_kernel(const double* x, const int64_t* segments, int columns, double* out) {
  const int64_t end = segments[2 * int64_t{blockIdx.x} + 1];
  double sum[1] = {};
  for (int64_t r = segments[2 * int64_t{blockIdx.x}] + threadIdx.x; r < end; r += kThreads)
    sum[0] += x[r * columns + blockIdx.y];
  write_block_sums(sum, true, out + int64_t{blockIdx.x} * columns + blockIdx.y);
}

__global__ void __launch_bounds__(kRatioThreads) ratios_kernel(TrustTable table, int64_t params) {
  if (table.decision[kApplied] == 0) return;
  const int64_t row = int64_t{blockIdx.x} * kRatioThreads + threadIdx.x;
  if (row < params) set_trust_ratios(table, row);
}

template <class T, class G>
struct UpdateRun {
  T* param;
  float *master, *m;  // master may be null
  const float *v, *q;
  const G* grad;
  const double *decision, *ratios;
  const int64_t* chunks;
  LambRule rule;
  bool decays, aligned;
};

template <class T, class G, bool kNoise>
__global__ void __launch_bounds__(kThreads) lamb_update_kernel(const UpdateRun<T, G> a) {
  if (a.decision[kApplied] == 0) return;
  const Scalars s = block_scalars(a.rule, a.decision, a.decays);
  const Chunk chunk(a.chunks, a.aligned);
  const auto step = static_cast<float>(a.decision[kRate] * a.ratios[2 * chunk.row]);
  const auto noise_step = static_cast<float>(a.decision[kRate] * a.ratios[2 * chunk.row + 1]);
  const float kept = 1 - s.rate * s.decay;
  each_group_of(chunk, [&]<bool kWide>(int64_t begin, int count) {
    float w[kGroup], m[kGroup], v[kGroup];
    [[maybe_unused]] float q[kGroup], g[kGroup];
    if (a.master != nullptr) {
      load<kWide>(a.master, begin, count, w);
    } else {
      load<kWide>(a.param, begin, count, w);
    }
    load<kWide>(a.m, begin, count, m);
    load<kWide>(a.v, begin, count, v);
    if constexpr (kNoise) {
      load<kWide>(a.q, begin, count, q);
      load<kWide>(a.grad, begin, count, g);
    }
    for (int e = 0; e < kGroup; ++e) {
      const float u = direction(s, m[e], v[e]);
      if constexpr (kNoise) {
        g[e] = fmaf(s.coupled_decay, w[e], g[e] * s.gradient);
        const float noise = direction(s, g[e] - m[e], q[e]);
        m[e] = fmaf(s.beta1, m[e], s.rest1 * g[e]);
        w[e] = fmaf(-noise_step, noise, fmaf(-step, u, w[e] * kept));
      } else {
        w[e] = fmaf(-step, fmaf(s.decay, w[e], u), w[e]);
      }
    }
    if constexpr (kNoise) store<kWide>(m, a.m, begin, count);
    if (a.master != nullptr) store<kWide>(w, a.master, begin, count);
    store<kWide>(w, a.param, begin, count);
  });
}

bool is_group_aligned(const ConstTensor& t) {
  return !t.present() || reinterpret_cast<uintptr_t>(t.data) % (kGroup * size_of(t.dtype)) == 0;
}

template <class... Tensors>
bool are_group_aligned(const Tensors&... tensors) {
  return (is_group_aligned(tensors) && ...);
}

template <class T>
T* data_or_null(const Tensor& t) {
  return t.present() ? data_of<T>(t) : nullptr;
}
template <class T>
const T* data_or_null(const ConstTensor& t) {
  return t.present() ? data_of<T>(t) : nullptr;
}

unsigned blocks_of(const ConstTensor& chunks) { return static_cast<unsigned>(chunks.shape[0]); }

// Calls body.operator()<G>() with the type of the gradient, which is f32 if it is absent.
template <class Body>
void visit_grad(const char* op, const ConstTensor& grad, Body body) {
  if (grad.present() && grad.dtype == DType::bf16) {
    body.template operator()<__nv_bfloat16>();
  } else if (!grad.present() || grad.dtype == DType::f32) {
    body.template operator()<float>();
  } else {
    refuse_dtype(op, grad.dtype);
  }
}

}  // namespace

void lamb_moments(Exec& ex, const ops::LambMoments& a) {
  if (a.chunks.shape[0] == 0) return;
  if (a.weights.dtype != DType::f32) refuse_dtype("lamb_moments", a.weights.dtype);
  visit_grad("lamb_moments: gradients", a.grad, [&]<class G>() {
    const MomentsRun<G> run{.weights = data_of<float>(a.weights),
                            .m = data_of<float>(a.m),
                            .v = data_of<float>(a.v),
                            .q = data_or_null<float>(a.q),
                            .grad = data_of<G>(a.grad),
                            .decision = data_of<double>(a.decision),
                            .chunks = data_of<int64_t>(a.chunks),
                            .squares = data_of<double>(a.squares),
                            .rule = a.rule,
                            .decays = a.decays,
                            .aligned = are_group_aligned(a.weights, a.m, a.v, a.q, a.grad)};
    if (a.rule.has_noise) {
      lamb_moments_kernel<G, true><<<blocks_of(a.chunks), kThreads, 0, stream_of(ex)>>>(run);
    } else {
      lamb_moments_kernel<G, false><<<blocks_of(a.chunks), kThreads, 0, stream_of(ex)>>>(run);
    }
  });
  check_launch("lamb_moments");
}

void sum_segments(Exec& ex, const ops::SumSegments& s) {
  const auto rows = static_cast<unsigned>(s.out.shape[0]);
  const auto columns = static_cast<unsigned>(s.out.shape[1]);
  if (rows == 0 || columns == 0) return;
  sum_segments_kernel<<<dim3(rows, columns), kThreads, 0, stream_of(ex)>>>(
      data_of<double>(s.x), data_of<int64_t>(s.segments), static_cast<int>(columns),
      data_of<double>(s.out));
  check_launch("sum_segments");
}

void lamb_ratios(Exec& ex, const ops::LambRatios& r) {
  const int64_t params = r.squares.shape[0];
  if (params == 0) return;
  const auto blocks = static_cast<unsigned>(ceil_div(params, kRatioThreads));
  ratios_kernel<<<blocks, kRatioThreads, 0, stream_of(ex)>>>(ops::trust_table(r), params);
  check_launch("lamb_ratios");
}

void lamb_update(Exec& ex, const ops::LambUpdate& a) {
  if (a.chunks.shape[0] == 0) return;
  visit_cuda(a.param.dtype, "lamb_update", [&]<class T>() {
    visit_grad("lamb_update: gradients", a.grad, [&]<class G>() {
      const UpdateRun<T, G> run{
          .param = data_of<T>(a.param),
          .master = data_or_null<float>(a.master),
          .m = data_of<float>(a.m),
          .v = data_of<float>(a.v),
          .q = data_or_null<float>(a.q),
          .grad = data_or_null<G>(a.grad),
          .decision = data_of<double>(a.decision),
          .ratios = data_of<double>(a.ratios),
          .chunks = data_of<int64_t>(a.chunks),
          .rule = a.rule,
          .decays = a.decays,
          .aligned = are_group_aligned(a.param, a.master, a.m, a.v, a.q, a.grad)};
      if (a.rule.has_noise) {
        lamb_update_kernel<T, G, true><<<blocks_of(a.chunks), kThreads, 0, stream_of(ex)>>>(run);
      } else {
        lamb_update_kernel<T, G, false><<<blocks_of(a.chunks), kThreads, 0, stream_of(ex)>>>(run);
      }
    });
  });
  check_launch("lamb_update");
}

}  // namespace bev::cuda
