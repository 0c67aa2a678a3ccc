// GEMM kernels of this program: fallback, small M, medium M, bias gradient.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// sums[i] += sum over k of op(a)[i, k], in f32. `partial`: memory for sums of parts, any size.
void add_row_sums(Exec& ex, const ConstTensor& a, ops::Transpose ta, const Tensor& sums,
                  std::byte* partial, size_t partial_bytes);

// A GEMM of our own for what the library does not take: any strides, any alignment, k =
// 0.

// target = op(a) op(b) [+ target] [+ bias], summed in f32. Activations and dbias are left out.
// REQUIRES: target has elements and out's dtype.
void gemm_fallback(Exec& ex, const ops::Matmul& m, const Tensor& target);

// GEMMs of a few rows with a large matrix, as generation has them: the time is that of reading
// the matrix, which is read once, and comes nearer while the kernel before still runs.

// Whether gemm_small_m() can serve.
bool fits_small_m(const ops::Matmul& m);

// The same of a GEMM that begins with a norm.
bool has_few_normed_rows(const ops::Matmul& m);

// All of m, summed in f32; the same bits each time. An activation sees the rounded sum, as
// ops::activate would. REQUIRES: fits_small_m(m), with a norm has_few_normed_rows(m); out has
// elements.
void gemm_small_m(Exec& ex, const ops::Matmul& m);

// GEMMs of some dozens of rows with a matrix that is not very large, as generation for many has
// them. Such a GEMM is over so soon that the time between kernels counts: this one begins while
// those before it still run, which the library's do not (Hopper only).

// Whether gemm_medium_m() can serve.
bool fits_medium_m(Exec& ex, const ops::Matmul& m);

// All of m, summed in f32; the same bits each time. An activation sees the rounded sum, as
// ops::activate would. REQUIRES: fits_medium_m(ex, m); out has elements.
void gemm_medium_m(Exec& ex, const ops::Matmul& m);

}  // namespace bev::cuda
