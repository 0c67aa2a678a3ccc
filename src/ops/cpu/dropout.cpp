#include "ops/dropout.h"

#include <cstring>

#include "ops/cpu/dropout_args.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/cpu/rows.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

void dropout(Exec& ex, const ops::DropoutApply& d) {
  visit_cpu(d.x.dtype, "dropout", [&]<class T>() {
    const RowsOf<const T> x(d.x);
    const RowsOf<T> y(d.y);
    const bool drops = d.dropout.probability > 0;
    each_piece(ex, x.count(), width_of(d.x), [&](int64_t row, int64_t begin, int64_t end) {
      const T* in = x[row] + begin;
      T* out = y[row] + begin;
      if (drops) {
        kernels_of<T>().dropout(in, nullptr, out, end - begin, draws_of(d.dropout, row, begin));
      } else if (in != out) {
        std::memmove(out, in, static_cast<size_t>(end - begin) * sizeof(T));
      }
    });
  });
}

void residual_add(Exec& ex, const ops::ResidualAdd& r) {
  visit_cpu(r.residual.dtype, "residual_add", [&]<class T>() {
    const RowsOf<const T> residual(r.residual), delta(r.delta);
    const RowsOf<T> out(r.out);
    each_piece(ex, out.count(), width_of(r.out), [&](int64_t row, int64_t begin, int64_t end) {
      add_dropped(residual[row] + begin, delta[row] + begin, out[row] + begin, end - begin,
                  r.dropout, row, begin);
    });
  });
}

}  // namespace bev::cpu
