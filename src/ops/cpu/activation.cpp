#include "ops/activation.h"

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/cpu/rows.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

void activate(Exec& ex, const ops::Activate& a) {
  visit_cpu(a.x.dtype, "activate", [&]<class T>() {
    const RowsOf<const T> x(a.x);
    const RowsOf<T> y(a.y);
    const int64_t width = width_of(a.y);
    const bool gated = is_gated(a.activation);
    each_piece(ex, y.count(), width, [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      kernels_of<T>().activate(a.activation, in, gated ? in + width : nullptr, y[row] + begin,
                               end - begin);
    });
  });
}

void activate_backward(Exec& ex, const ops::ActivateBackward& a) {
  visit_cpu(a.x.dtype, "activate_backward", [&]<class T>() {
    const RowsOf<const T> dy(a.dy), x(a.x);
    const RowsOf<T> dx(a.dx);
    const int64_t width = width_of(a.dy);
    const bool gated = is_gated(a.activation);
    each_piece(ex, dy.count(), width, [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      T* out = dx[row] + begin;
      kernels_of<T>().activate_backward(a.activation, dy[row] + begin, in,
                                        gated ? in + width : nullptr, out,
                                        gated ? out + width : nullptr, end - begin);
    });
  });
}

}  // namespace bev::cpu
