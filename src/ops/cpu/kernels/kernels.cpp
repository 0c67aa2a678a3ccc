#include "ops/cpu/kernels/kernels.h"

#include <algorithm>

#include "ops/cpu/attention/attention_problem.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/simd/isa.h"

namespace bev::cpu {

const Kernels& kernels(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return kAvx512Kernels;
    case Isa::Avx2: return kAvx2Kernels;
    case Isa::Portable: break;
  }
  return kPortableKernels;
}

const Kernels& kernels() {
  static const Kernels& best = kernels(best_isa());
  return best;
}

size_t workspace_bytes() { return std::max(gemm_workspace_bytes(), attention_workspace_bytes()); }

}  // namespace bev::cpu
