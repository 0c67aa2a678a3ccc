#include "ops/cuda/gemm/gemm_autotune.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "device/device_graph.h"
#include "device/timer_event.h"
#include "ops/cuda/gpu.h"

namespace bev::cuda {

namespace {

constexpr int kCandidates = 32;
// Who is timed under load: the library's first proposal, which may know about power, and the
// fastest of the others.
constexpr size_t kFinalists = 3;
// How long a finalist runs before it is timed, and how long it is timed: this many calls, but no
// longer than the clock needs to settle. Small products, which are soon tuned, leave a GPU cool.
constexpr double kCalls = 300, kLongestSeconds = 0.05;
// One call of a short product says more about the host than about the product.
constexpr double kShortSeconds = 1e-4;
constexpr int kShortCalls = 20;

struct Timed {
  const cublasLtMatmulAlgo_t* algorithm;
  double seconds;
};

}  // namespace

double ProductTuner::time(int repeats, FunctionRef<void()> work) {
  const Stream stream = gpu_.compute_stream();
  const auto call = [&] {
    for (int i = 0; i < repeats; ++i) work();
  };
  Recording recording;
  if (repeats > 1 && gpu_.can_record()) recording = Recording::of(gpu_, stream, call);
  const auto issue = [&] {
    if (recording.present()) {
      recording.replay(stream);
    } else {
      call();
    }
  };
  if (repeats > 1) issue();  // the GPU gets warm, and has the recording
  const TimeMark begin(gpu_, stream);
  issue();
  return TimeMark(gpu_, stream).seconds_since(begin) / repeats;
}

std::optional<ProductTuner::Fastest> ProductTuner::fastest(const LtDescription& d,
                                                           const ops::Matmul& m) {
  cudaStream_t stream = gpu_.stream(gpu_.compute_stream().index());
  const double begin = seconds_now();
  const std::vector<cublasLtMatmulAlgo_t> algorithms = library_.candidates(d, m, kCandidates);
  const auto run = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return library_.launch(stream, d, m, algorithm) == CUBLAS_STATUS_SUCCESS;
  };
  const auto seconds_of = [&](const cublasLtMatmulAlgo_t& algorithm, int calls) {
    bool failed = false;
    const double seconds = time(calls, [&] { failed |= !run(algorithm); });
    return failed ? std::numeric_limits<double>::infinity() : seconds;
  };
  std::vector<Timed> timed;
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    if (!run(algorithm)) continue;  // the first call also loads the kernel
    double seconds = seconds_of(algorithm, 1);
    if (seconds < kShortSeconds) seconds = seconds_of(algorithm, kShortCalls);
    timed.push_back({&algorithm, seconds});
  }
  if (timed.empty()) return std::nullopt;
  const auto faster = [](const Timed& x, const Timed& y) { return x.seconds < y.seconds; };
  std::stable_sort(timed.begin() + 1, timed.end(), faster);
  if (timed.size() > kFinalists) timed.resize(kFinalists);
  for (Timed& t : timed) {
    const double seconds = std::max(t.seconds, 1e-6);
    const int calls = static_cast<int>(std::clamp(kLongestSeconds / seconds, 1.0, kCalls));
    t.seconds = seconds_of(*t.algorithm, calls);
  }
  const Timed& best = *std::min_element(timed.begin(), timed.end(), faster);
  spent_ += seconds_now() - begin;
  return Fastest{*best.algorithm, best.seconds};
}

}  // namespace bev::cuda
