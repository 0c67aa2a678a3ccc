// Finds the fastest algorithm for a product by running it.
//
// A large GPU under load runs at the clock that its power limit allows, and algorithms differ in
// what they draw: the one that is fastest on a cool GPU is often not the fastest in training. The
// best few therefore run for a while before they are timed.
#pragma once

#include <optional>

#include "base/function_ref.h"
#include "ops/cuda/gemm/cublaslt_gemm.h"

namespace bev::cuda {

class Gpu;

class ProductTuner {
 public:
  ProductTuner(const LtProducts& library, Gpu& gpu) : library_(library), gpu_(gpu) {}

  // Tuning at the start of a run must not be felt: what is not begun when the time is spent takes
  // the library's first proposal, and its turn in the next run.
  bool has_time() const { return spent_ < kMostSeconds; }
  double spent() const { return spent_; }

  struct Fastest {
    cublasLtMatmulAlgo_t algorithm;
    double seconds;
  };
  // Runs the product many times: its output, and what it adds to, is lost. Nothing where no
  // proposal runs.
  std::optional<Fastest> fastest(const LtDescription& d, const ops::Matmul& m);

 private:
  static constexpr double kMostSeconds = 4.5;

  // Seconds of one call of `work`, which issues on the compute stream. Several run as often before
  // they are timed, and are recorded where that is possible: the host may need longer to issue a
  // short product than the GPU for it.
  double time(int repeats, FunctionRef<void()> work);

  const LtProducts& library_;
  Gpu& gpu_;
  double spent_ = 0;
};

}  // namespace bev::cuda
