#include "ops/cpu/few_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"
#include "device/thread_pool.h"
#include "ops/cpu/gemm_kernel.h"

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
  const auto multiply = [&](int64_t task, int) {
    const int64_t begin = task * kFewColumns;
    kernels.multiply_few(g, packed, begin, std::min(kFewColumns, g.n - begin));
  };
  const int64_t tasks = div_ceil(g.n, kFewColumns);
  if (g.n * g.k < kSerialWeights) {
    for (int64_t task = 0; task < tasks; ++task) multiply(task, 0);
  } else {
    pool.each(tasks, multiply);
  }
}

}  // namespace bev::cpu
