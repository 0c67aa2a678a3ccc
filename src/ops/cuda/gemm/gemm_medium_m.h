// Products of some dozens of rows with a matrix that is not very large, as generation for many has
// them. Such a product is over so soon that the time between kernels counts: this one begins while
// those before it still run, which the library's do not (Hopper only).
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// Whether mid_row_product() can serve.
bool has_mid_rows(Exec& ex, const ops::Matmul& m);

// All of m, summed in f32; the same bits each time. An activation sees the rounded sum, as
// ops::activate would. REQUIRES: has_mid_rows(ex, m); out has elements.
void mid_row_product(Exec& ex, const ops::Matmul& m);

}  // namespace bev::cuda
