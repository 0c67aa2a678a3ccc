// GEMMs on the CPU: f32 or bf16 operands, sums in f32, and everything that can be done to the
// result before it leaves the registers. Blocking follows Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008.
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/choices.h"
#include "ops/cpu/simd/isa.h"
#include "tensor/dtype.h"

namespace bev {
class ThreadPool;
}

namespace bev::cpu {

// Element (i, j) is data[i * row_stride + j * col_stride]; one of the two strides is 1.
struct GemmOperand {
  const void* data = nullptr;
  DType dtype = DType::f32;  // or bf16
  int64_t row_stride = 0, col_stride = 0;
};

// x = a b (+ c when accumulating) + bias. Without an activation c = x; with `activate`
// c = activation(x); with activation_input c = x * activation'(activation_input).
// A bf16 c is rounded to nearest even; its activation is taken of x already rounded, so that it
// equals the activation of the stored pre_activation bit for bit.
// Strides are in elements. No two of the written matrices may overlap each other or an operand;
// activation_input may be c itself.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  GemmOperand a{}, b{};  // [m, k], [k, n]

  void* c = nullptr;           // [m, n], rows contiguous
  DType c_dtype = DType::f32;  // or bf16
  int64_t c_stride = 0;
  bool accumulate = false;

  const void* bias = nullptr;  // [n], may be absent
  DType bias_dtype = DType::f32;

  bool activate = false;
  Activation activation{};         // one that is not gated
  void* pre_activation = nullptr;  // [m, n] of c's dtype, may be absent: receives x
  int64_t pre_activation_stride = 0;
  const void* activation_input = nullptr;  // [m, n] of c's dtype; excludes `activate`
  int64_t activation_input_stride = 0;

  float* row_sums = nullptr;  // [m], may be absent: the sums of a over k are added
};

// Bytes of workspace per thread, the same for every GEMM.
size_t gemm_workspace_bytes();

// Computes the GEMM on all threads of the pool and returns when it is done. No result depends on
// the number of threads. Allocates nothing. REQUIRES: `workspace`, aligned to 64 bytes, holds
// gemm_workspace_bytes() for each thread, one after the other; not called inside pool.run() or
// share().
void gemm(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa = best_isa());

// The same GEMM, bit for bit, on the calling thread alone with the workspace of one thread; for
// small GEMMs inside a parallel section.
void gemm_on_thread(std::byte* workspace, const Gemm& g, Isa isa = best_isa());

}  // namespace bev::cpu

// Small-M GEMMs, whose time is dominated by reading b: each weight is read once, in place, and b is
// not packed.

namespace bev::cpu {

// Maximum number of rows of a.
constexpr int64_t kFewRows = 16;

// Whether few_rows() can compute g: at most kFewRows rows of a, which fit the workspace; rows of a
// and columns of b contiguous along k; no row sums.
bool is_few_rows(const Gemm& g);

// Computes what gemm() computes, but in another order of summation, which depends on k only. No
// result depends on the number of threads or on other rows of a. REQUIRES: is_few_rows(g), and the
// requirements of gemm().
void few_rows(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa = best_isa());

}  // namespace bev::cpu
