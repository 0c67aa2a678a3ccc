// GEMM kernels of this program: fallback, small M, medium M, bias gradient.
#pragma once

#include "ops/matmul.h"

namespace bev::cuda {

// sums[i] += sum over k of op(a)[i, k], in f32. `partial`: memory for sums of parts, any size.
void add_row_sums(Exec& ex, const ConstTensor& a, ops::Transpose ta, const Tensor& sums,
                  std::byte* partial, size_t partial_bytes);

// Fallback GEMM for operands that cuBLASLt does not support: any strides, any alignment, k = 0.

// target = op(a) op(b) [+ target] [+ bias], summed in f32. Activations and dbias are left out.
// REQUIRES: target has elements and out's dtype.
void gemm_fallback(Exec& ex, const ops::Matmul& m, const Tensor& target);

// Small-M GEMMs with a large matrix, as in generation. Reading the matrix dominates the time: it is
// read once, and prefetched while the previous kernel still runs.

// Set by inference: whether no pending work writes the weights, and a norm to fuse (optional).
struct InferenceWeights {
  bool constant = false;
  ops::FusedNorm norm{};
};

// Whether gemm_small_m() can compute m without a norm.
bool fits_small_m(const ops::Matmul& m);

// Whether gemm_small_m() can compute m with this norm.
bool fits_small_m(const ops::Matmul& m, const ops::FusedNorm& norm);

// Computes all of m, with sums in f32; the same bits each time. An activation is applied to the
// rounded sum, as by ops::activate. REQUIRES: fits_small_m(m), with a norm fits_small_m(m, norm);
// out has elements.
void gemm_small_m(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights);

// Medium-M GEMMs (some dozens of rows) with a matrix of moderate size, as in generation for many
// requests. They are so short that the gaps between kernels matter: this kernel starts while
// earlier kernels still run, which cuBLASLt's kernels do not (Hopper only).

// Whether gemm_medium_m() can compute m.
bool fits_medium_m(Exec& ex, const ops::Matmul& m);

// Computes all of m, with sums in f32; the same bits each time. An activation is applied to the
// rounded sum, as by ops::activate. REQUIRES: fits_medium_m(ex, m); no norm; out has elements.
void gemm_medium_m(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights);

}  // namespace bev::cuda
