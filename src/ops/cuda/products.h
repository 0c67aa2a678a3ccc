// Matrix products through cuBLASLt: descriptors and algorithms are chosen once per kind of product.
#pragma once

#include <memory>

#include "ops/matmul.h"

namespace bev::cuda {

class Gpu;

// Whether the library is asked to apply the activation, or its slope, inside the product. It then
// sees the sum before it is rounded, so that the result differs from ops::activate(pre_activation)
// in the last bit; a deterministic device never does this.
bool fuses_activation(const ops::Matmul& m, const DevicePolicy& policy);

class Products {
 public:
  // Throws a Device error where cuBLASLt cannot be loaded.
  explicit Products(Gpu& gpu);
  ~Products();

  // Everything but m.dbias. REQUIRES: out has elements; exec.stream is the compute stream.
  void run(Exec& ex, const ops::Matmul& m);

  // The same for two runs that have chosen the same algorithms for the same products.
  uint64_t choices_hash() const;

  // kProductWorkspace bytes that belong to whatever the compute stream executes.
  std::byte* workspace() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bev::cuda
