// The decision of a step by one thread, and the optimizers as one pass over flat memory. Nothing is
// used twice, so that wide accesses are marked as the first to leave the caches.
#include <algorithm>

#include "base/philox.h"
#include "ops/cuda/optimizer/flat_groups.cuh"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

using flat::allows_groups;
using flat::kGroup;
using flat::kThreads;
using flat::kTurn;
using flat::load;
using flat::store;

// Rounds away from zero with the probability of the part cut off, so that the mean is exact.
__device__ float round_stochastically(float value, uint32_t draw) {
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7F800000u) == 0x7F800000u) return value;
  return __uint_as_float((bits + (draw & 0xFFFFu)) & 0xFFFF0000u);
}

template <class T>
__device__ void round_for(float* values, uint64_t key, uint64_t step, int64_t logical) {
  if constexpr (sizeof(T) == 2) {
    const PhiloxBlock draws = philox(key, step, static_cast<uint64_t>(logical) / kGroup);
    for (int e = 0; e < kGroup; ++e) values[e] = round_stochastically(values[e], draws[e]);
  }
}

// Calls body.operator()<wide>(first element, how many) for every group of the block's span.
template <class Body>
__device__ __forceinline__ void each_group(int64_t count, int64_t span, bool wide, Body body) {
  const int64_t end = min(count, (int64_t{blockIdx.x} + 1) * span);
  int64_t begin = int64_t{blockIdx.x} * span + int64_t{threadIdx.x} * kGroup;
  if (wide) {
    for (; begin < end; begin += kTurn) body.template operator()<true>(begin, kGroup);
  } else {
    for (; begin < end; begin += kTurn) {
      const int here = static_cast<int>(min(int64_t{kGroup}, count - begin));
      body.template operator()<false>(begin, here);
    }
  }
}

__global__ void factors_of_losses(const double* counts, const double* loss_scale,
                                  LossWeights weights, double* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = weights[i] * (loss_scale != nullptr ? *loss_scale : 1.0) / fmax(counts[i], 1.0);
}

__global__ void decide(const double* norm_squared, const double* loss, UpdateRule rule,
                       double* state, double* decision) {
  decide_update(*norm_squared, loss, rule, state, decision);
}

template <class T, class G, class M, class V>
struct AdamWRange {
  T* param;
  float* master;  // may be null
  M* m;
  V* v;
  const G* grad;
  const double* decision;
  int64_t count, span;
  double beta1, beta2;
  float eps;
  bool decays, wide;
  uint64_t key_m, key_v;
  int64_t first;
};

template <class T, class G, class M, class V>
__global__ void __launch_bounds__(kThreads) adamw_kernel(const AdamWRange<T, G, M, V> a) {
  // step_size, root of correction 2, decay of the weight
  __shared__ float shared[3];
  if (a.decision[kApplied] == 0) return;
  // Two warps, so that the powers, which take as long as a turn, are computed at once.
  if (threadIdx.x == 0) {
    const double rate = a.decision[kRate];
    shared[0] = static_cast<float>(rate / (1 - pow(a.beta1, a.decision[kStepNumber])));
    shared[2] = static_cast<float>(1 - rate * (a.decays ? a.decision[kWeightDecay] : 0.0));
  } else if (threadIdx.x == 32) {
    shared[1] = static_cast<float>(sqrt(1 - pow(a.beta2, a.decision[kStepNumber])));
  }
  __syncthreads();
  const float step_size = shared[0], root_correction2 = shared[1], decay = shared[2];
  const auto factor = static_cast<float>(a.decision[kFactor]);
  const auto step = static_cast<uint64_t>(a.decision[kStepNumber]);
  const auto beta1 = static_cast<float>(a.beta1), rest1 = static_cast<float>(1 - a.beta1);
  const auto beta2 = static_cast<float>(a.beta2), rest2 = static_cast<float>(1 - a.beta2);
  each_group(a.count, a.span, a.wide, [&]<bool kWide>(int64_t begin, int count) {
    float p[kGroup], m[kGroup], v[kGroup], g[kGroup];
    load<kWide>(a.grad, begin, count, g);
    load<kWide>(a.m, begin, count, m);
    load<kWide>(a.v, begin, count, v);
    if (a.master != nullptr) {
      load<kWide>(a.master, begin, count, p);
    } else {
      load<kWide>(a.param, begin, count, p);
    }
    for (int e = 0; e < kGroup; ++e) {
      const float scaled = g[e] * factor;
      m[e] = fmaf(beta1, m[e], rest1 * scaled);
      v[e] = fmaf(beta2, v[e], rest2 * scaled * scaled);
      p[e] = p[e] * decay - step_size * m[e] / (sqrtf(v[e]) / root_correction2 + a.eps);
    }
    round_for<M>(m, a.key_m, step, a.first + begin);
    round_for<V>(v, a.key_v, step, a.first + begin);
    store<kWide>(m, a.m, begin, count);
    store<kWide>(v, a.v, begin, count);
    if (a.master != nullptr) store<kWide>(p, a.master, begin, count);
    store<kWide>(p, a.param, begin, count);
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_kernel(T* param, float* master, float* buffer, const float* grad, const double* decision,
               int64_t count, int64_t span, float momentum, bool decays, bool wide) {
  if (decision[kApplied] == 0) return;
  const auto factor = static_cast<float>(decision[kFactor]);
  const auto rate = static_cast<float>(decision[kRate]);
  const auto decay = decays ? static_cast<float>(decision[kWeightDecay]) : 0.0f;
  const bool is_first = decision[kStepNumber] == 1;
  each_group(count, span, wide, [&]<bool kWide>(int64_t begin, int here) {
    float p[kGroup], b[kGroup], g[kGroup];
    load<kWide>(grad, begin, here, g);
    load<kWide>(buffer, begin, here, b);
    if (master != nullptr) {
      load<kWide>(master, begin, here, p);
    } else {
      load<kWide>(param, begin, here, p);
    }
    for (int e = 0; e < kGroup; ++e) {
      const float d = fmaf(decay, p[e], g[e] * factor);
      b[e] = is_first ? d : fmaf(momentum, b[e], d);
      p[e] = fmaf(-rate, b[e], p[e]);
    }
    store<kWide>(b, buffer, begin, here);
    if (master != nullptr) store<kWide>(p, master, begin, here);
    store<kWide>(p, param, begin, here);
  });
}

// The elements of a block: one turn where that fills the GPU once at most, else a few, which make
// up for the block's start; but no more, so that blocks are many and no multiprocessor waits long
// for the last ones of another.
int64_t span_for(Exec& ex, int64_t count) {
  const int64_t at_once = int64_t{gpu_of(ex).multiprocessors()} * (2048 / kThreads);
  return kTurn * std::clamp<int64_t>(ceil_div(count, kTurn * at_once), 1, 4);
}

unsigned blocks_for(int64_t count, int64_t span) {
  return static_cast<unsigned>(ceil_div(count, span));
}

template <class T, class G, class M, class V>
void launch_adamw(Exec& ex, const ops::AdamW& a) {
  const bool wide = allows_groups(a.param) && allows_groups(a.master) && allows_groups(a.m) &&
                    allows_groups(a.v) && allows_groups(a.grad);
  const AdamWRange<T, G, M, V> range{
      .param = data_of<T>(a.param),
      .master = a.master.present() ? data_of<float>(a.master) : nullptr,
      .m = data_of<M>(a.m),
      .v = data_of<V>(a.v),
      .grad = data_of<G>(a.grad),
      .decision = data_of<double>(a.decision),
      .count = a.param.shape[0],
      .span = span_for(ex, a.param.shape[0]),
      .beta1 = a.beta1,
      .beta2 = a.beta2,
      .eps = static_cast<float>(a.eps),
      .decays = a.decays,
      .wide = wide,
      .key_m = mix_key(a.rounding_key, uint64_t{1}),
      .key_v = a.rounding_key,
      .first = a.first};
  adamw_kernel<<<blocks_for(range.count, range.span), kThreads, 0, stream_of(ex)>>>(range);
  check_launch("adamw");
}

// bf16 parameters: gradients and moments may be short too.
void launch_bf16(Exec& ex, const ops::AdamW& a) {
  using B = __nv_bfloat16;
  const bool g = a.grad.dtype == DType::bf16, m = a.m.dtype == DType::bf16,
             v = a.v.dtype == DType::bf16;
  const auto with_grad = [&]<class G>() {
    if (m && v) return launch_adamw<B, G, B, B>(ex, a);
    if (m) return launch_adamw<B, G, B, float>(ex, a);
    if (v) return launch_adamw<B, G, float, B>(ex, a);
    launch_adamw<B, G, float, float>(ex, a);
  };
  if (g) {
    with_grad.template operator()<B>();
  } else {
    with_grad.template operator()<float>();
  }
}

}  // namespace

void loss_factors(Exec& ex, const ops::LossFactors& f) {
  factors_of_losses<<<1, static_cast<unsigned>(f.counts.shape[0]), 0, stream_of(ex)>>>(
      data_of<double>(f.counts), f.loss_scale.present() ? data_of<double>(f.loss_scale) : nullptr,
      f.weights, data_of<double>(f.out));
  check_launch("loss_factors");
}

void decide_update(Exec& ex, const ops::DecideUpdate& u) {
  decide<<<1, 1, 0, stream_of(ex)>>>(data_of<double>(u.norm_squared), data_of<double>(u.loss),
                                     u.rule, data_of<double>(u.state), data_of<double>(u.decision));
  check_launch("decide_update");
}

void adamw(Exec& ex, const ops::AdamW& a) {
  if (a.param.shape[0] == 0) return;
  switch (a.param.dtype) {
    case DType::f32: launch_adamw<float, float, float, float>(ex, a); return;
    case DType::bf16: launch_bf16(ex, a); return;
    case DType::f16:
      if (a.grad.dtype != DType::f32 || a.m.dtype != DType::f32 || a.v.dtype != DType::f32)
        refuse_dtype("adamw: gradients or moments", DType::f16);
      launch_adamw<__half, float, float, float>(ex, a);
      return;
    default: refuse_dtype("adamw", a.param.dtype);
  }
}

void sgd(Exec& ex, const ops::Sgd& s) {
  const int64_t count = s.param.shape[0];
  if (count == 0) return;
  const int64_t span = span_for(ex, count);
  if (s.grad.dtype != DType::f32) refuse_dtype("sgd: gradients", s.grad.dtype);
  const bool wide = allows_groups(s.param) && allows_groups(s.master) && allows_groups(s.buffer) &&
                    allows_groups(s.grad);
  visit_cuda(s.param.dtype, "sgd", [&]<class T>() {
    sgd_kernel<T><<<blocks_for(count, span), kThreads, 0, stream_of(ex)>>>(
        data_of<T>(s.param), s.master.present() ? data_of<float>(s.master) : nullptr,
        data_of<float>(s.buffer), data_of<float>(s.grad), data_of<double>(s.decision), count, span,
        static_cast<float>(s.momentum), s.decays, wide);
  });
  check_launch("sgd");
}

}  // namespace bev::cuda
