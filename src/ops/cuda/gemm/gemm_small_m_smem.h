// Products of at most eight rows, or of one that is normalised on the way, with a matrix that is
// not very deep: a block has whole rows of the matrix in its shared memory, which arrive while
// kernels before it still run. Shared memory holds more of a matrix than registers do, and so
// little is left to wait for.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// Whether staged_product() serves m, with m.norm if that is present. REQUIRES: has_few_rows(m).
bool can_be_staged(const ops::Matmul& m);

// As few_row_product(). REQUIRES: can_be_staged(m).
void staged_product(Exec& ex, const ops::Matmul& m);

}  // namespace bev::cuda
