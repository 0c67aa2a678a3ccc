#include "ops/cpu/gemm/gemm_tile.h"

namespace bev::cpu {

// 12 of 16 registers hold sums; a panel of b of this depth leaves room in a 32 KiB cache.
constinit const GemmKernels kGemmAvx2 = make_gemm_kernels<avx2::Vec, 4, 3, 256, 2>(256);

}  // namespace bev::cpu
