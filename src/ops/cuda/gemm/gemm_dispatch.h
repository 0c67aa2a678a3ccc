// GEMMs: kernels of our own for few rows, cuBLASLt for all others it can, with an
// algorithm that is chosen once per kind of GEMM, else a simple kernel.
#pragma once

#include <memory>
#include <string>

#include "ops/matmul.h"

namespace bev::cuda {

class Gpu;

class GemmDispatch {
 public:
  // Throws a Device error where cuBLASLt cannot be loaded.
  explicit GemmDispatch(Gpu& gpu);
  ~GemmDispatch();

  // Everything but m.dbias. REQUIRES: out has elements; exec.stream is the compute stream.
  void run(Exec& ex, const ops::Matmul& m);

  // The same for two runs that have chosen the same algorithms for the same GEMMs.
  uint64_t choices_hash() const;

  // Keeps what was timed for the runs to come. Returns what was done in a sentence; empty: nothing.
  std::string end_tuning();

  // kGemmWorkspace bytes that belong to whatever the compute stream executes.
  std::byte* workspace() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bev::cuda
