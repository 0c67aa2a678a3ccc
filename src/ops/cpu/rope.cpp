#include "ops/rope.h"

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

void rope(Exec& ex, const ops::Rope& r) {
  visit_cpu(r.x.dtype, "rope", [&]<class T>() {
    const int64_t heads = r.x.shape[1], half = r.cosine.shape[1];
    const auto* positions = reinterpret_cast<const int32_t*>(r.positions.data);
    const auto* cosine = reinterpret_cast<const float*>(r.cosine.data);
    const auto* sine = reinterpret_cast<const float*>(r.sine.data);
    auto* x = reinterpret_cast<T*>(r.x.data);
    threads_of(ex).split(r.x.rows(), grain_rows(heads * half), [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        kernels_of<T>().rope({.x = x + token * r.x.stride[0],
                              .heads = heads,
                              .head_stride = r.x.stride[1],
                              .half = half,
                              .cosine = cosine + positions[token] * r.cosine.stride[0],
                              .sine = sine + positions[token] * r.sine.stride[0],
                              .inverse = r.inverse});
      }
    });
  });
}

}  // namespace bev::cpu
