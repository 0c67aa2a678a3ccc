// GEMM dispatch: custom kernels for small and medium M; cuBLASLt for all other GEMMs that it
// supports, with an algorithm chosen once per kind of GEMM; else a simple fallback kernel.
#pragma once

#include <memory>
#include <string>

#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/matmul.h"

namespace bev::cuda {

class Gpu;

class GemmDispatch {
 public:
  // Throws a Device error if cuBLASLt cannot be loaded.
  explicit GemmDispatch(Gpu& gpu);
  ~GemmDispatch();

  // Computes all of m but m.dbias. REQUIRES: out has elements; exec.stream is the compute stream; a
  // norm fits_small_m().
  void run(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights = {});

  // Equal for two runs that have chosen the same algorithms for the same GEMMs.
  uint64_t choices_hash() const;

  // Saves the tuned algorithms for later runs. Returns a summary in one sentence; empty: there is
  // nothing to report.
  std::string end_tuning();

  // kGemmWorkspace bytes that only work on the compute stream uses.
  std::byte* workspace() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bev::cuda
