#include "ops/cpu/kernels/kernels.h"

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

}  // namespace bev::cpu
