#include "ops/cpu/kernels/kernel_table.h"

namespace bev::cpu {

constinit const Kernels kPortableKernels = make_kernels<portable::Vec>();

}  // namespace bev::cpu
