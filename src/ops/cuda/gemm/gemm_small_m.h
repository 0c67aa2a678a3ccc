// Products of a few rows with a large matrix, as generation has them: the time is that of reading
// the matrix, which is read once, and comes nearer while the kernel before still runs.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// Whether few_row_product() can serve.
bool has_few_rows(const ops::Matmul& m);

// The same of a product that begins with a norm.
bool has_few_normed_rows(const ops::Matmul& m);

// All of m, summed in f32; the same bits each time. An activation sees the rounded sum, as
// ops::activate would. REQUIRES: has_few_rows(m), with a norm has_few_normed_rows(m); out has
// elements.
void few_row_product(Exec& ex, const ops::Matmul& m);

}  // namespace bev::cuda
