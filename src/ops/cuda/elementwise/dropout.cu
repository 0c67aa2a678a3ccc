#include "ops/cuda/elementwise/dropout_args.cuh"
#include "ops/dropout.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kThreads = 256;

// out = dropout(x) [+ residual], group by group; out may be either operand.
template <class T, bool kAdds>
__global__ void __launch_bounds__(kThreads)
    dropout_groups(Rows<const T> x, Rows<const T> residual, Rows<T> out, int64_t rows,
                   int64_t width, DropoutDraws draws, bool wide) {
  each_group(rows, width, [&](int64_t row, int64_t column) {
    const Group<T> value = load_group(x[row], column, width, wide);
    Group<T> base;
    if constexpr (kAdds) base = load_group(residual[row], column, width, wide);
    unsigned kept = ~0u;
    if (draws.active) kept = draws.kept(row, column);
    float sum[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      sum[j] = (kept >> j & 1u) != 0 ? value[j] * draws.scale : 0.0f;
      if constexpr (kAdds) sum[j] += base[j];
    }
    store_group(Group<T>::of(sum), out[row], column, width, wide);
  });
}

}  // namespace

void dropout(Exec& ex, const ops::DropoutApply& d) {
  const int64_t rows = d.x.rows(), width = width_of(d.x);
  if (rows * width == 0) return;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(d.x.dtype, "dropout", [&]<class T>() {
    dropout_groups<T, false>
        <<<blocks, kThreads, 0, stream_of(ex)>>>(Rows<const T>(d.x), {}, Rows<T>(d.y), rows, width,
                                                 DropoutDraws(d.dropout), are_wide(d.x, d.y));
  });
  check_launch("dropout");
}

void residual_add(Exec& ex, const ops::ResidualAdd& r) {
  const int64_t rows = r.out.rows(), width = width_of(r.out);
  if (rows * width == 0) return;
  const unsigned blocks = blocks_for(ex, rows * ceil_div(width, kGroup), kThreads);
  visit_cuda(r.out.dtype, "residual_add", [&]<class T>() {
    dropout_groups<T, true><<<blocks, kThreads, 0, stream_of(ex)>>>(
        Rows<const T>(r.delta), Rows<const T>(r.residual), Rows<T>(r.out), rows, width,
        DropoutDraws(r.dropout), are_wide(r.residual, r.delta, r.out));
  });
  check_launch("residual_add");
}

}  // namespace bev::cuda
