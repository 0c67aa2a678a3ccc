#include "ops/cpu/kernels/kernel_table.h"

namespace bev::cpu {

constinit const Kernels kAvx512Kernels = make_kernels<avx512::Vec>();

}  // namespace bev::cpu
