#include "ops/lamb_update.h"

#include "base/check.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// Chunks below which waking another thread costs more than it saves.
constexpr int64_t kChunkGrain = 2 * kGrain / ops::kLambChunk;

LambScalars scalars_of(const LambRule& rule, const LambFactors& f) {
  return {.gradient = static_cast<float>(f.gradient),
          .beta1 = static_cast<float>(rule.beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .rest1 = static_cast<float>(f.rest1),
          .rest2 = static_cast<float>(1 - rule.beta2),
          .first = static_cast<float>(f.first),
          .root_correction2 = static_cast<float>(f.root_correction2),
          .eps = static_cast<float>(rule.eps),
          .decay = static_cast<float>(f.decay),
          .coupled_decay = static_cast<float>(f.coupled_decay)};
}

// Element `begin` of a flat f32 tensor, or null for an absent one.
template <class T, class View>
T* elements_from(const View& t, int64_t begin) {
  return t.present() ? reinterpret_cast<T*>(t.data) + begin : nullptr;
}

void require_f32(const char* op, const ConstTensor& t) {
  BEV_CHECK(!t.present() || t.dtype == DType::f32, Usage,
            "{}: the cpu device keeps gradients and moments in f32, not {}", op, name_of(t.dtype));
}

// Calls body(chunk, its row of the table) for every chunk.
template <class Body>
void each_chunk(Exec& ex, const ConstTensor& chunks, const Body& body) {
  const auto* table = reinterpret_cast<const int64_t*>(chunks.data);
  threads_of(ex).split(chunks.shape[0], kChunkGrain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) body(c, table + c * ops::kChunkFields);
  });
}

}  // namespace

void lamb_moments(Exec& ex, const ops::LambMoments& a) {
  const auto* decision = reinterpret_cast<const double*>(a.decision.data);
  if (decision[kApplied] == 0) return;
  require_f32("lamb_moments", a.weights);
  require_f32("lamb_moments", a.grad);
  const LambScalars scalars = scalars_of(a.rule, lamb_factors(a.rule, decision, a.decays));
  auto* squares = reinterpret_cast<double*>(a.squares.data);
  const int64_t norms = a.squares.shape[1];
  each_chunk(ex, a.chunks, [&](int64_t c, const int64_t* chunk) {
    const int64_t begin = chunk[ops::kChunkBegin];
    double sums[kMostLambNorms];
    kernels().lamb_moments({.weights = elements_from<const float>(a.weights, begin),
                            .m = elements_from<float>(a.m, begin),
                            .v = elements_from<float>(a.v, begin),
                            .q = elements_from<float>(a.q, begin),
                            .grad = elements_from<const float>(a.grad, begin),
                            .count = chunk[ops::kChunkCount],
                            .scalars = scalars},
                           sums);
    for (int64_t k = 0; k < norms; ++k)
      squares[c * norms + k] = chunk[ops::kChunkNorm] != 0 ? sums[k] : 0;
  });
}

void sum_segments(Exec&, const ops::SumSegments& s) {
  const auto* x = reinterpret_cast<const double*>(s.x.data);
  const auto* segments = reinterpret_cast<const int64_t*>(s.segments.data);
  auto* out = reinterpret_cast<double*>(s.out.data);
  const int64_t columns = s.x.shape[1];
  for (int64_t i = 0; i < s.out.shape[0]; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (int64_t row = segments[2 * i]; row < segments[2 * i + 1]; ++row)
        sum += x[row * columns + c];
      out[i * columns + c] = sum;
    }
  }
}

void lamb_ratios(Exec&, const ops::LambRatios& r) {
  const TrustTable table = ops::trust_table(r);
  if (table.decision[kApplied] == 0) return;
  for (int64_t i = 0; i < r.squares.shape[0]; ++i) set_trust_ratios(table, i);
}

void lamb_update(Exec& ex, const ops::LambUpdate& a) {
  const auto* decision = reinterpret_cast<const double*>(a.decision.data);
  if (decision[kApplied] == 0) return;
  require_f32("lamb_update", a.m);
  require_f32("lamb_update", a.grad);
  const LambFactors f = lamb_factors(a.rule, decision, a.decays);
  const LambScalars scalars = scalars_of(a.rule, f);
  const auto* ratios = reinterpret_cast<const double*>(a.ratios.data);
  visit_cpu(a.param.dtype, "lamb_update", [&]<class T>() {
    each_chunk(ex, a.chunks, [&](int64_t, const int64_t* chunk) {
      const int64_t begin = chunk[ops::kChunkBegin];
      const double* ratio = ratios + 2 * chunk[ops::kChunkRow];
      kernels_of<T>().lamb_update({.param = elements_from<T>(a.param, begin),
                                   .master = elements_from<float>(a.master, begin),
                                   .m = elements_from<float>(a.m, begin),
                                   .v = elements_from<const float>(a.v, begin),
                                   .q = elements_from<const float>(a.q, begin),
                                   .grad = elements_from<const float>(a.grad, begin),
                                   .count = chunk[ops::kChunkCount],
                                   .rate = static_cast<float>(f.rate),
                                   .step = static_cast<float>(f.rate * ratio[0]),
                                   .noise_step = static_cast<float>(f.rate * ratio[1]),
                                   .scalars = scalars});
    });
  });
}

}  // namespace bev::cpu
