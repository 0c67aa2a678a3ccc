// Matrix products through cuBLASLt: descriptors and algorithms are chosen once per kind of product.
#pragma once

#include <memory>

#include "ops/matmul.h"

namespace bev::cuda {

class Gpu;

class Products {
 public:
  explicit Products(Gpu& gpu);
  ~Products();
  void run(Exec& ex, const ops::Matmul& m);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bev::cuda
