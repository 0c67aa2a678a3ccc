#include "ops/cpu/gemm/gemm_tile.h"

namespace bev::cpu {

constinit const GemmKernels kGemmPortable = make_gemm_kernels<portable::Vec, 4, 2, 256, 2>(256);

}  // namespace bev::cpu
