// Loss and gradient of rows that hold all classes, each row read from memory once. A block keeps
// its row in shared memory between the sums and the gradient. Each thread copies the groups that
// it alone will use, and as soon as it is done with one it asks for that of the block's next row:
// reads and writes of memory go on side by side, and the only barrier of a row is that of its sums.
//
// The part of a row that shared memory cannot hold is read twice, the second time mostly from the
// L2 cache: a multiprocessor then has one row at a time, so that no more than the rows of all (34
// MB for 132 rows of 256 KiB) pass through the cache between the two.
#include "ops/cuda/loss/loss_rows.cuh"
#include "ops/cuda/primitives/cp_async.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"

namespace bev::cuda {

namespace {

// Of a multiprocessor, in one block or in several: 64 registers for each.
constexpr int kThreads = 1024, kMostWarps = kThreads / 32;
constexpr int kInFlight = 4;  // groups beyond shared memory asked for before the first is used
constexpr int kBatches = 4;   // of a row's copies: the sums begin when the first has arrived

using Sums = RowSums<BinaryExp>;

// The sums of all lanes, in every lane.
__device__ __forceinline__ Sums over_warp(Sums sums) {
  sums.raise(warp_max(sums.max));
  sums.sum_exp = warp_sum(sums.sum_exp);
  sums.sum = warp_sum(sums.sum);
  return sums;
}

// What the warps tell each other: for two rows in turn, since a warp may be done with the next row
// while another still reads this one's.
struct Exchange {
  float3 warp[2][kMostWarps];
};
static_assert(sizeof(Exchange) % kWideBytes == 0);  // the held groups come after it

// The sums of all threads, in every thread, added in one order by every warp.
__device__ __forceinline__ Sums over_block(Sums sums, float3 (&exchange)[kMostWarps]) {
  const int lane = threadIdx.x % 32;
  sums = over_warp(sums);
  if (lane == 0) exchange[threadIdx.x / 32] = {sums.max, sums.sum_exp, sums.sum};
  __syncthreads();
  Sums of_warp;
  if (lane < static_cast<int>(blockDim.x) / 32) {
    of_warp.max = exchange[lane].x;
    of_warp.sum_exp = exchange[lane].y;
    of_warp.sum = exchange[lane].z;
  }
  return over_warp(of_warp);
}

// dlogit = factor * exponential - offset, and at the target what was computed apart, because its
// terms cancel where the model is sure.
struct RowGradient {
  float origin, factor, offset, at_target;

  // With p = exp(target logit - lse), the slope at the target is p - 1 + smoothing and the term of
  // z_loss; 1 - p comes from the sum of the others.
  __device__ __forceinline__ RowGradient(const LossTerms& t, const Sums& sums, float scale,
                                         float target_logit)
      : origin(sums.origin()) {
    const float lse =
        sums.max + __logf(__fdividef(sums.sum_exp, BinaryExp::from(origin, sums.max)));
    const float of_z_loss = 2 * static_cast<float>(t.z_loss) * lse;
    const float hit = BinaryExp::from(origin, target_logit), part = 1 / sums.sum_exp;
    const float p = hit * part, others = (sums.sum_exp - hit) * part;
    factor = scale * (1 + of_z_loss) * part;
    offset = scale * static_cast<float>(t.smoothing / t.classes);
    at_target = scale * (static_cast<float>(t.smoothing) - others + of_z_loss * p) - offset;
  }
  __device__ __forceinline__ float operator()(float logit) const {
    return factor * BinaryExp::from(origin, logit) - offset;
  }
};

template <class T>
struct WholeRows {
  const T* logits;
  int64_t logits_step;  // from row to row
  T* dlogits;           // may be null, may be logits
  int64_t dlogits_step;
  float* loss;
  int64_t rows;
  LossTerms terms;
  int held;    // groups of a row that shared memory has room for
  bool alike;  // rows of logits and of dlogits are aligned alike
};

template <class T>
struct Row {
  const T* x;
  Parts<T> parts;
  __device__ __forceinline__ Row(const WholeRows<T>& a, int64_t row)
      : x(a.logits + row * a.logits_step), parts(x, a.terms.columns) {}
  __device__ __forceinline__ const T* group(int g) const {
    return x + parts.lead + int64_t{g} * kGroup;
  }
};

// The groups of a row that are kept in shared memory, group g in place g, by the thread that uses
// it.
template <class T>
class HeldGroups {
 public:
  __device__ __forceinline__ HeldGroups(unsigned char* memory, int held)
      : place_(reinterpret_cast<Group<T>*>(memory)),
        held_(held),
        batch_(static_cast<int>(ceil_div(ceil_div(held, blockDim.x), kBatches) * blockDim.x)) {}

  // Calls body(g, place) for the thread's groups in a batch that are below `count`.
  template <class Body>
  __device__ __forceinline__ void each(int batch, int count, Body body) const {
    const int end = min(min((batch + 1) * batch_, held_), count);
    int g = batch * batch_ + threadIdx.x;
    for (Group<T>* place = place_ + g; g < end; g += blockDim.x, place += blockDim.x) {
      body(g, *place);
    }
  }
  // Calls body(g, group) for the thread's groups that are not held.
  template <class Body>
  __device__ __forceinline__ void each_other(const Row<T>& row, Body body) const {
    const int step = blockDim.x, count = row.parts.groups;
    for (int g = held_ + threadIdx.x; g < count; g += kInFlight * step) {
      Group<T> group[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (g + i * step < count) group[i] = load_wide(row.group(g + i * step));
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (g + i * step < count) body(g + i * step, group[i]);
      }
    }
  }

 private:
  Group<T>* place_;
  int held_, batch_;
};

// Of the thread's columns, as the batches of the row arrive.
template <class T>
__device__ __forceinline__ Sums add_columns(const Row<T>& row, const HeldGroups<T>& held) {
  Sums sums;
  const auto add_batch = [&](int batch) {
    held.each(batch, row.parts.groups, [&](int, const Group<T>& group) { sums.add(group); });
  };
  static_assert(kBatches == 4);
  wait_for_batches<3>();
  add_batch(0);
  wait_for_batches<2>();
  add_batch(1);
  wait_for_batches<1>();
  add_batch(2);
  wait_for_batches<0>();
  add_batch(3);
  held.each_other(row, [&](int, const Group<T>& group) { sums.add(group); });
  row.parts.each_single([&](int column) { sums.add(to_float(row.x[column])); });
  return sums;
}

template <class T>
struct GradientOut {
  RowGradient gradient;
  T* dx;
  int lead;
  int target;   // column, or -1
  bool counts;  // else the gradient is 0, whatever the logits are
  bool alike;

  __device__ __forceinline__ void write(int g, const Group<T>& group) const {
    float d[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) d[j] = gradient(group[j]);
    const int hit = target - lead - g * kGroup;
    if (hit >= 0 && hit < kGroup) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) d[j] = j == hit ? gradient.at_target : d[j];
    }
    const Group<T> slopes = counts ? Group<T>::of(d) : Group<T>{};
    T* to = dx + lead + int64_t{g} * kGroup;
    if (alike) {
      store_wide(slopes, to);
    } else {
      store_group(slopes, to, 0, kGroup, false);
    }
  }
  __device__ __forceinline__ void write_single(int column, T logit) const {
    const float d = column == target ? gradient.at_target : gradient(to_float(logit));
    dx[column] = from_float<T>(counts ? d : 0.0f);
  }
};

// Block b computes rows b, b + gridDim.x, ...; every block has a row. dlogits may be logits: the
// sums are complete before the first element of a row is written, and every element is read and
// written by one thread.
template <class T>
__global__ void __launch_bounds__(kThreads) row_losses_and_gradients(const WholeRows<T> a) {
  extern __shared__ __align__(kWideBytes) unsigned char memory[];
  Exchange& exchange = *reinterpret_cast<Exchange*>(memory);
  const HeldGroups<T> held(memory + sizeof(Exchange), a.held);
  const LossTerms& terms = a.terms;
  const double scale = gradient_scale(terms);

  const Row<T> first(a, blockIdx.x);
#pragma unroll 1
  for (int batch = 0; batch < kBatches; ++batch) {
    held.each(batch, first.parts.groups,
              [&](int g, Group<T>& place) { copy_group(&place, first.group(g)); });
    end_batch();
  }
  int turn = 0;
  for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x, turn ^= 1) {
    const Row<T> row(a, r);
    const int32_t target_class = terms.targets[r];
    const float weight = terms.weight[r];
    Sums sums = add_columns(row, held);
    const auto target = static_cast<int>(target_column(target_class, 0, terms.columns));
    const float target_logit = target >= 0 ? to_float(row.x[target]) : 0.0f;
    sums = over_block(sums, exchange.warp[turn]);

    const auto row_scale = static_cast<float>(static_cast<double>(weight) * scale);
    const GradientOut<T> out{.gradient = RowGradient(terms, sums, row_scale, target_logit),
                             .dx = a.dlogits + r * a.dlogits_step,
                             .lead = row.parts.lead,
                             .target = target,
                             .counts = target_class >= 0,
                             .alike = a.alike};
    const bool has_next = r + gridDim.x < a.rows;
    const Row<T> next(a, has_next ? r + gridDim.x : r);
    const int asked = has_next ? next.parts.groups : 0;
    const int written = a.dlogits != nullptr ? row.parts.groups : 0;
#pragma unroll 1
    for (int batch = 0; batch < kBatches; ++batch) {
      held.each(batch, max(written, asked), [&](int g, Group<T>& place) {
        if (g < written) out.write(g, place);
        if (g < asked) copy_group(&place, next.group(g));
      });
      end_batch();
    }
    if (a.dlogits != nullptr) {
      held.each_other(row, [&](int g, const Group<T>& group) { out.write(g, group); });
      row.parts.each_single([&](int column) { out.write_single(column, row.x[column]); });
    }

    // In f64, by one thread that is done with its part of the row.
    if (threadIdx.x == blockDim.x - 1) {
      const auto at_max = static_cast<double>(BinaryExp::from(sums.origin(), sums.max));
      const double log_sum = log(static_cast<double>(sums.sum_exp) / at_max);
      a.loss[r] = row_loss(terms, target_class, static_cast<double>(sums.max) + log_sum,
                           static_cast<double>(target_logit), static_cast<double>(sums.sum));
    }
  }
}

struct Residence {
  int threads, blocks;  // blocks: on a multiprocessor at a time
  size_t held_bytes;    // of a block's row
};

// Rows share a multiprocessor where two of them fit, or eight short ones, whose groups are few:
// while one waits at the barrier of its sums, another computes.
Residence residence_for(int64_t columns, size_t row_bytes) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cross_entropy");
  const auto attribute = [device](cudaDeviceAttr which) {
    int value = 0;
    check_cuda(cudaDeviceGetAttribute(&value, which, device), "cross_entropy");
    return static_cast<size_t>(value);
  };
  const size_t all = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const size_t most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - sizeof(Exchange);
  const size_t besides = attribute(cudaDevAttrReservedSharedMemoryPerBlock) + sizeof(Exchange);
  const int threads = columns > 4096 ? kThreads / 2 : kThreads / 8;
  const int blocks = kThreads / threads;
  if (row_bytes <= all / static_cast<size_t>(blocks) - besides) return {threads, blocks, row_bytes};
  return {kThreads, 1, std::min(row_bytes, most)};
}

}  // namespace

void cross_entropy_full_rows(Exec& ex, const ops::CrossEntropy& c) {
  const int64_t rows = c.logits.rows(), columns = width_of(c.logits);
  visit_cuda(c.logits.dtype, "cross_entropy", [&]<class T>() {
    constexpr size_t kBytes = sizeof(Group<T>);
    const auto row_groups = static_cast<size_t>(columns / kGroup);
    const Residence residence = residence_for(columns, row_groups * kBytes);
    const size_t held = residence.held_bytes / kBytes;
    const WholeRows<T> args{.logits = data_of<T>(c.logits),
                            .logits_step = c.logits.stride[0],
                            .dlogits = data_of<T>(c.dlogits),
                            .dlogits_step = c.dlogits.present() ? c.dlogits.stride[0] : 0,
                            .loss = data_of<float>(c.loss),
                            .rows = rows,
                            .terms = loss_terms(c),
                            .held = static_cast<int>(held),
                            .alike = c.dlogits.present() && are_alike(c.logits, c.dlogits)};
    const int64_t resident = int64_t{gpu_of(ex).multiprocessors()} * residence.blocks;
    launch("cross_entropy", row_losses_and_gradients<T>, std::min(rows, resident),
           residence.threads, sizeof(Exchange) + held * kBytes, stream_of(ex), args);
  });
}

}  // namespace bev::cuda
