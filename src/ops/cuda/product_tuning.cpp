#include "ops/cuda/product_tuning.h"

#include <algorithm>

#include "base/clock.h"
#include "device/cuda/check.h"

namespace bev::cuda {

namespace {

constexpr int kCandidates = 64;
// The second round, which decides: those nearly as fast as the fastest of the first, in turn, so
// that a change of clocks meets all of them.
constexpr size_t kFinalists = 6;
constexpr double kNearly = 1.08;
constexpr int kTurns = 4;
constexpr double kSecondsPerTurn = 1e-3;

struct Timed {
  const cublasLtMatmulAlgo_t* algorithm;
  double seconds;
};

}  // namespace

ProductTuner::ProductTuner(const LtProducts& library) : library_(library) {
  check(cudaEventCreate(&begin_), "making a timer");
  check(cudaEventCreate(&end_), "making a timer");
}

ProductTuner::~ProductTuner() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

double ProductTuner::time(cudaStream_t stream, int repeats, FunctionRef<void()> work) {
  check(cudaEventRecord(begin_, stream), "starting a timer");
  for (int i = 0; i < repeats; ++i) work();
  check(cudaEventRecord(end_, stream), "stopping a timer");
  check(cudaEventSynchronize(end_), "timing a product");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "timing a product");
  return 1e-3 * static_cast<double>(milliseconds) / repeats;
}

std::optional<ProductTuner::Fastest> ProductTuner::fastest(cudaStream_t stream,
                                                           const LtDescription& d,
                                                           const ops::Matmul& m) {
  const double begin = seconds_now();
  const std::vector<cublasLtMatmulAlgo_t> algorithms = library_.candidates(d, m, kCandidates);
  const auto run = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return library_.launch(stream, d, m, algorithm) == CUBLAS_STATUS_SUCCESS;
  };
  std::vector<Timed> timed;
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    if (!timed.empty() && seconds_now() - begin > kMostSecondsEach) break;
    if (!run(algorithm)) continue;  // the first call also loads the kernel
    timed.push_back({&algorithm, time(stream, 1, [&] { run(algorithm); })});
  }
  if (timed.empty()) return std::nullopt;
  const auto faster = [](const Timed& x, const Timed& y) { return x.seconds < y.seconds; };
  std::stable_sort(timed.begin(), timed.end(), faster);
  const double limit = kNearly * timed.front().seconds;
  std::erase_if(timed, [&](const Timed& t) { return t.seconds > limit; });
  if (timed.size() > kFinalists) timed.resize(kFinalists);
  if (timed.size() > 1) {
    const int repeats =
        static_cast<int>(std::clamp(kSecondsPerTurn / timed.front().seconds, 1.0, 16.0));
    for (Timed& t : timed) t.seconds = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (Timed& t : timed)
        t.seconds += time(stream, repeats, [&] { run(*t.algorithm); }) / kTurns;
    }
    std::stable_sort(timed.begin(), timed.end(), faster);
  }
  spent_ += seconds_now() - begin;
  return Fastest{*timed.front().algorithm, timed.front().seconds};
}

}  // namespace bev::cuda
