// Finds the fastest algorithm for a GEMM by running it.
//
// A large GPU under load runs at the clock that its power limit allows, and algorithms differ in
// what they draw: the one that is fastest on a cool GPU is often not the fastest in training. The
// best few therefore run for a while before they are timed.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/function_ref.h"
#include "ops/cuda/gemm/cublaslt_gemm.h"
#include "ops/cuda/gemm/gemm_key.h"

namespace bev::cuda {

class Gpu;

class GemmAutotuner {
 public:
  GemmAutotuner(const CublasLtGemm& library, Gpu& gpu) : library_(library), gpu_(gpu) {}

  // Autotuning must not delay the start of a run noticeably. When the time is spent, the remaining
  // kinds use cuBLASLt's first proposal and are tuned in the next run.
  bool has_time() const { return spent_ < kMostSeconds; }
  double spent() const { return spent_; }

  struct Fastest {
    cublasLtMatmulAlgo_t algorithm;
    double seconds;
  };
  // Runs the GEMM many times, which overwrites its output and what it accumulates to. Empty if no
  // proposal runs.
  std::optional<Fastest> fastest(const CublasLtProblem& d, const ops::Matmul& m);

 private:
  static constexpr double kMostSeconds = 4.5;

  // Seconds per call of `work`, which issues on the compute stream. With several repeats, an equal
  // number of calls runs untimed first, and the calls are captured as a CUDA graph if possible: the
  // host may need longer to issue a short GEMM than the GPU to compute it.
  double time(int repeats, FunctionRef<void()> work);

  const CublasLtGemm& library_;
  Gpu& gpu_;
  double spent_ = 0;
};

// The fastest algorithm found for each kind of GEMM, kept on disk from run to run: one file per GPU
// model and cuBLASLt version.

struct TunedGemm {
  bool fused = false;                   // includes the activation
  std::array<uint64_t, 8> algorithm{};  // opaque, the library's own
  double seconds = 0;                   // of one GEMM when it was chosen
};

class GemmAutotuneCache {
 public:
  // An empty folder: nothing is read or kept. A file that cannot be read or has another format is
  // treated as absent.
  GemmAutotuneCache(const std::filesystem::path& folder, const std::string& gpu,
                    size_t library_version);

  // Null if nothing is known.
  const TunedGemm* find(const GemmKey& kind) const;
  void put(const GemmKey& kind, const TunedGemm& gemm);

  // Writes the entries of put(), merged with the entries that other processes have written in the
  // meantime. If two processes write at the same moment, the entries of one may be lost. Returns
  // why it failed; empty if it succeeded or there was nothing to write.
  std::string save();

  const std::filesystem::path& file() const { return file_; }

 private:
  using TunedGemms = std::unordered_map<GemmKey, TunedGemm, PlanKeyHash>;
  TunedGemms read() const;
  std::string text_of(const TunedGemms& gemms) const;

  std::filesystem::path file_;
  std::string gpu_;
  size_t library_version_;
  TunedGemms known_, fresh_;
};

}  // namespace bev::cuda
