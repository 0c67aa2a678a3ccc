#include "ops/matmul.h"

#include "ops/cuda/gemm/bias_gradient.h"
#include "ops/cuda/gemm/gemm_dispatch.h"
#include "ops/cuda/gemm/gemm_small_m.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/workspace.h"
#include "ops/op_table.h"

namespace bev::cuda {

void matmul(Exec& ex, const ops::Matmul& m) {
  Products& products = gpu_of(ex).products();
  // The stream executes one after the other, so both may use the products' workspace.
  if (m.dbias.present()) {
    add_row_sums(ex, m.a, m.ta, m.dbias, products.workspace(), kProductWorkspace);
  }
  if (m.out.shape.elements() > 0) products.run(ex, m);
}

bool norms_on_the_way(Exec&, const ops::Matmul& m) { return has_few_normed_rows(m); }

}  // namespace bev::cuda
