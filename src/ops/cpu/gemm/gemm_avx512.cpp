#include "ops/cpu/gemm/gemm_tile.h"

namespace bev::cpu {

// 24 of 32 registers hold sums.
constinit const GemmKernels kGemmAvx512 = make_gemm_kernels<avx512::Vec, 8, 3, 256, 4>(384);

}  // namespace bev::cpu
