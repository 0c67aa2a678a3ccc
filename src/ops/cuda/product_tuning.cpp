#include "ops/cuda/product_tuning.h"

#include <algorithm>

#include "base/clock.h"
#include "device/cuda/check.h"

namespace bev::cuda {

namespace {

constexpr int kCandidates = 32;
// Who is timed under load: the library's first proposal, which may know about power, and the
// fastest of the others.
constexpr size_t kFinalists = 3;
// How long a finalist runs before it is timed, and how long it is timed: this many calls, but no
// longer than the clock needs to settle. Small products, which are soon tuned, leave a GPU cool.
constexpr double kCalls = 300, kLongestSeconds = 0.05;

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
    if (!run(algorithm)) continue;  // the first call also loads the kernel
    timed.push_back({&algorithm, time(stream, 1, [&] { run(algorithm); })});
  }
  if (timed.empty()) return std::nullopt;
  const auto faster = [](const Timed& x, const Timed& y) { return x.seconds < y.seconds; };
  std::stable_sort(timed.begin() + 1, timed.end(), faster);
  if (timed.size() > kFinalists) timed.resize(kFinalists);
  for (Timed& t : timed) {
    const double seconds = std::max(t.seconds, 1e-6);
    const int calls = static_cast<int>(std::clamp(kLongestSeconds / seconds, 1.0, kCalls));
    time(stream, calls, [&] { run(*t.algorithm); });
    t.seconds = time(stream, calls, [&] { run(*t.algorithm); });
  }
  const Timed& best = *std::min_element(timed.begin(), timed.end(), faster);
  spent_ += seconds_now() - begin;
  return Fastest{*best.algorithm, best.seconds};
}

}  // namespace bev::cuda
