#include "ops/cpu/kernels/kernel_table.h"

namespace bev::cpu {

constinit const Kernels kAvx2Kernels = make_kernels<avx2::Vec>();

}  // namespace bev::cpu
