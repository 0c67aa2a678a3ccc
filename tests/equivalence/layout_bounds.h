// How far a layout may be from one rank.
#pragma once

#include "config/choices.h"
#include "verify/run_comparison.h"

namespace bev::test {

struct Bounds {
  double loss, gradient, weight;  // relative; that of the gradient norm is the gradient's

  double of(Quantity quantity) const {
    switch (quantity) {
      case Quantity::Loss: return loss;
      case Quantity::Weight: return weight;
      default: return gradient;
    }
  }
};

// Layouts differ in the order of sums only, so a difference is some roundings, of 2^-53 or 2^-24,
// times the terms of a sum over the sum. The terms of a loss are all positive. Those of a gradient
// cancel, most of all in the weights of norms, whose gradients sum 64 tokens behind up to 8 layers.
// A weight is off by at most the learning rate times what its gradients are off by over eps. The
// largest of all cases: in f64 7e-16, 4e-13 and 3e-13; in f32, with the portable, AVX2 and AVX-512
// kernels, 4e-7, 8e-5 and 2.2e-5. A sample that a rank forgets makes some 1e-2.
inline constexpr Bounds kF64{1e-12, 1e-12, 1e-12}, kF32{2e-6, 4e-4, 1e-4};

// On a GPU. In bf16 tensor ranks round their parts of a sum. The largest on an H200: 5e-8, 2.4e-6
// and 1.3e-6 in f32; 1.1e-4, 0.012 and 0.01 in bf16, where weights follow their gradients (SGD). A
// sample or a part that a rank forgets makes some 0.3 and more.
inline constexpr Bounds kCudaF32{1e-6, 5e-5, 2e-5}, kCudaBf16{2e-3, 5e-2, 3e-2};

}  // namespace bev::test
