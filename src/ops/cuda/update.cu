// The decision of a step by one thread, and the optimizers as one pass over flat memory.
#include <algorithm>

#include "base/philox.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ops.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kGroup = 4;  // elements of a thread: one 16-byte access of f32

// Groups are whole except the last; `wide` ones are read and written at once.
template <class T>
struct alignas(sizeof(T) * kGroup) Group {
  T at[kGroup];
};

template <class T>
__device__ void load(const T* from, int64_t begin, int count, bool wide, float* to) {
  Group<T> group{};
  if (wide && count == kGroup) {
    group = *reinterpret_cast<const Group<T>*>(from + begin);
  } else {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      if (e < count) group.at[e] = from[begin + e];
    }
  }
#pragma unroll
  for (int e = 0; e < kGroup; ++e) to[e] = to_float(group.at[e]);
}

template <class T>
__device__ void store(const float* from, T* to, int64_t begin, int count, bool wide) {
  Group<T> group;
#pragma unroll
  for (int e = 0; e < kGroup; ++e) group.at[e] = from_float<T>(from[e]);
  if (wide && count == kGroup) {
    *reinterpret_cast<Group<T>*>(to + begin) = group;
  } else {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      if (e < count) to[begin + e] = group.at[e];
    }
  }
}

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

__global__ void decide(const double* norm_squared, const double* loss, UpdateRule rule,
                       double* state, double* decision) {
  decide_update(*norm_squared, *loss, rule, state, decision);
}

template <class T, class G, class M, class V>
struct AdamWRange {
  T* param;
  float* master;  // may be null
  M* m;
  V* v;
  const G* grad;
  const double* decision;
  int64_t count;
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
  if (threadIdx.x == 0) {
    const double step = a.decision[kStepNumber], rate = a.decision[kRate];
    shared[0] = static_cast<float>(rate / (1 - pow(a.beta1, step)));
    shared[1] = static_cast<float>(sqrt(1 - pow(a.beta2, step)));
    shared[2] = static_cast<float>(1 - rate * (a.decays ? a.decision[kWeightDecay] : 0.0));
  }
  __syncthreads();
  const float step_size = shared[0], root_correction2 = shared[1], decay = shared[2];
  const auto factor = static_cast<float>(a.decision[kFactor]);
  const auto step = static_cast<uint64_t>(a.decision[kStepNumber]);
  const auto beta1 = static_cast<float>(a.beta1), rest1 = static_cast<float>(1 - a.beta1);
  const auto beta2 = static_cast<float>(a.beta2), rest2 = static_cast<float>(1 - a.beta2);
  const int64_t stride = int64_t{gridDim.x} * kThreads * kGroup;
  for (int64_t begin = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kGroup; begin < a.count;
       begin += stride) {
    const int count = static_cast<int>(min(int64_t{kGroup}, a.count - begin));
    float p[kGroup], m[kGroup], v[kGroup], g[kGroup];
    load(a.grad, begin, count, a.wide, g);
    load(a.m, begin, count, a.wide, m);
    load(a.v, begin, count, a.wide, v);
    if (a.master != nullptr) {
      load(a.master, begin, count, a.wide, p);
    } else {
      load(a.param, begin, count, a.wide, p);
    }
    for (int e = 0; e < kGroup; ++e) {
      const float scaled = g[e] * factor;
      m[e] = fmaf(beta1, m[e], rest1 * scaled);
      v[e] = fmaf(beta2, v[e], rest2 * scaled * scaled);
      p[e] = p[e] * decay - step_size * m[e] / (sqrtf(v[e]) / root_correction2 + a.eps);
    }
    round_for<M>(m, a.key_m, step, a.first + begin);
    round_for<V>(v, a.key_v, step, a.first + begin);
    store(m, a.m, begin, count, a.wide);
    store(v, a.v, begin, count, a.wide);
    if (a.master != nullptr) store(p, a.master, begin, count, a.wide);
    store(p, a.param, begin, count, a.wide);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_kernel(T* param, float* master, float* buffer, const float* grad, const double* decision,
               int64_t count, float momentum, bool decays, bool wide) {
  if (decision[kApplied] == 0) return;
  const auto factor = static_cast<float>(decision[kFactor]);
  const auto rate = static_cast<float>(decision[kRate]);
  const auto decay = decays ? static_cast<float>(decision[kWeightDecay]) : 0.0f;
  const bool is_first = decision[kStepNumber] == 1;
  const int64_t stride = int64_t{gridDim.x} * kThreads * kGroup;
  for (int64_t begin = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kGroup; begin < count;
       begin += stride) {
    const int here = static_cast<int>(min(int64_t{kGroup}, count - begin));
    float p[kGroup], b[kGroup], g[kGroup];
    load(grad, begin, here, wide, g);
    load(buffer, begin, here, wide, b);
    if (master != nullptr) {
      load(master, begin, here, wide, p);
    } else {
      load(param, begin, here, wide, p);
    }
    for (int e = 0; e < kGroup; ++e) {
      const float d = fmaf(decay, p[e], g[e] * factor);
      b[e] = is_first ? d : fmaf(momentum, b[e], d);
      p[e] = fmaf(-rate, b[e], p[e]);
    }
    store(b, buffer, begin, here, wide);
    if (master != nullptr) store(p, master, begin, here, wide);
    store(p, param, begin, here, wide);
  }
}

// Whether groups of four elements of this tensor are aligned; an absent one is.
bool allows_groups(const ConstTensor& t) {
  return reinterpret_cast<uintptr_t>(t.data) % (kGroup * size_of(t.dtype)) == 0;
}

int blocks_for(Exec& ex, int64_t count) {
  const int64_t wanted = ceil_div(count, kThreads * kGroup);
  return static_cast<int>(std::min<int64_t>(wanted, 16 * gpu_of(ex).multiprocessors()));
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
      .beta1 = a.beta1,
      .beta2 = a.beta2,
      .eps = static_cast<float>(a.eps),
      .decays = a.decays,
      .wide = wide,
      .key_m = mix_key(a.rounding_key, uint64_t{1}),
      .key_v = a.rounding_key,
      .first = a.first};
  adamw_kernel<<<blocks_for(ex, range.count), kThreads, 0, stream_of(ex)>>>(range);
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
  if (s.grad.dtype != DType::f32) refuse_dtype("sgd: gradients", s.grad.dtype);
  const bool wide = allows_groups(s.param) && allows_groups(s.master) && allows_groups(s.buffer) &&
                    allows_groups(s.grad);
  visit_cuda(s.param.dtype, "sgd", [&]<class T>() {
    sgd_kernel<T><<<blocks_for(ex, count), kThreads, 0, stream_of(ex)>>>(
        data_of<T>(s.param), s.master.present() ? data_of<float>(s.master) : nullptr,
        data_of<float>(s.buffer), data_of<float>(s.grad), data_of<double>(s.decision), count,
        static_cast<float>(s.momentum), s.decays, wide);
  });
  check_launch("sgd");
}

}  // namespace bev::cuda
