#include "ops/cpu/gemm/gemm_small_m.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/integer.h"
#include "device/thread_pool.h"
#include "ops/cpu/gemm/gemm_kernel.h"

namespace bev::cpu {

namespace {

// Weights below which waking the other threads costs more than they save.
constexpr int64_t kSerialWeights = 32768;

}  // namespace

bool is_few_rows(const Gemm& g) {
  const auto packed = static_cast<size_t>(g.m * round_up(g.k, 16)) * sizeof(float);
  return g.m <= kFewRows && g.a.col_stride == 1 && g.b.row_stride == 1 && g.row_sums == nullptr &&
         packed <= gemm_workspace_bytes();
}

void few_rows(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa) {
  BEV_CHECK(is_few_rows(g), Internal, "{} rows of a are not few", g.m);
  if (g.m == 0) return;
  const GemmKernels& kernels = gemm_kernels(isa);
  auto* packed = reinterpret_cast<float*>(workspace);
  kernels.pack_few(g, packed);
  std::atomic<int64_t> drawn{0};
  const int64_t tasks = div_ceil(g.n, kFewColumns);
  const auto work = [&](int) {
    int64_t task = drawn.fetch_add(1);
    while (task < tasks) {
      // Drawn early, so that it is known what to read next.
      const int64_t following = drawn.fetch_add(1), begin = task * kFewColumns;
      kernels.multiply_few(g, packed, begin, std::min(kFewColumns, g.n - begin),
                           std::min(g.n, following * kFewColumns));
      task = following;
    }
  };
  if (g.n * g.k < kSerialWeights) {
    work(0);
  } else {
    pool.share(work);
  }
}

}  // namespace bev::cpu
