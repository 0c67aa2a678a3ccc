#include "ops/cuda/gemm/gemm_autotune.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/philox.h"
#include "device/device_graph.h"
#include "device/timing.h"
#include "ops/cuda/gpu.h"

namespace bev::cuda {

namespace {

constexpr int kCandidates = 32;
// Who is timed under load: the library's first proposal, which may know about power, and the
// fastest of the others.
constexpr size_t kFinalists = 3;
// How long a finalist runs before it is timed, and how long it is timed: this many calls, but no
// longer than the clock needs to settle. Small GEMMs, which are soon tuned, leave a GPU cool.
constexpr double kCalls = 300, kLongestSeconds = 0.05;
// One call of a short GEMM says more about the host than about the GEMM.
constexpr double kShortSeconds = 1e-4;
constexpr int kShortCalls = 20;

struct Timed {
  const cublasLtMatmulAlgo_t* algorithm;
  double seconds;
};

}  // namespace

double GemmAutotuner::time(int repeats, FunctionRef<void()> work) {
  const Stream stream = gpu_.compute_stream();
  const auto call = [&] {
    for (int i = 0; i < repeats; ++i) work();
  };
  DeviceGraph graph;
  if (repeats > 1 && gpu_.supports_graphs()) graph = DeviceGraph::capture(gpu_, stream, call);
  const auto issue = [&] {
    if (graph.present()) {
      graph.launch(stream);
    } else {
      call();
    }
  };
  if (repeats > 1) issue();  // the GPU gets warm, and has the graph
  const TimerEvent begin(gpu_, stream);
  issue();
  return TimerEvent(gpu_, stream).seconds_since(begin) / repeats;
}

std::optional<GemmAutotuner::Fastest> GemmAutotuner::fastest(const CublasLtProblem& d,
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

namespace {

// Grows whenever the meaning of a kind or of an entry changes.
constexpr int kFormat = 3;
static_assert(std::tuple_size_v<GemmKey> == 23, "another kind is another format");
constexpr JsonLimits kLimits{.bytes = size_t{16} << 20, .depth = 8};

std::string slug_of(const std::string& name) {
  std::string slug;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !slug.empty() && slug.back() != '-') slug += '-';
  }
  return slug;
}

// An algorithm is opaque: what a damaged one would do cannot be known, so it must not reach the
// library.
uint64_t checksum_of(const GemmKey& kind, const TunedGemm& gemm) {
  uint64_t sum = mix_key(PlanKeyHash{}(kind), gemm.fused ? 1u : 0u);
  for (const uint64_t word : gemm.algorithm) sum = mix_key(sum, word);
  return sum;
}

Json json_of(const GemmKey& kind, const TunedGemm& gemm) {
  return {{"kind", kind},
          {"activation_inside", gemm.fused},
          {"algorithm", gemm.algorithm},
          {"microseconds", 1e6 * gemm.seconds},
          {"checksum", checksum_of(kind, gemm)}};
}

}  // namespace

GemmAutotuneCache::GemmAutotuneCache(const std::filesystem::path& folder, const std::string& gpu,
                                     size_t library_version)
    : gpu_(gpu), library_version_(library_version) {
  if (folder.empty()) return;
  file_ = folder / format("gemm-autotune-{}-{}.json", slug_of(gpu), library_version);
  known_ = read();
}

GemmAutotuneCache::TunedGemms GemmAutotuneCache::read() const {
  TunedGemms gemms;
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return gemms;
  try {
    const Json json = read_json(file_, kLimits);
    if (json.at("format") != kFormat || json.at("gpu") != gpu_ ||
        json.at("library") != library_version_) {
      return gemms;
    }
    for (const Json& entry : json.at("gemms")) {
      const auto kind = entry.at("kind").get<GemmKey>();
      const TunedGemm gemm{.fused = entry.at("activation_inside").get<bool>(),
                           .algorithm = entry.at("algorithm").get<std::array<uint64_t, 8>>(),
                           .seconds = 1e-6 * entry.at("microseconds").get<double>()};
      if (entry.at("checksum").get<uint64_t>() == checksum_of(kind, gemm)) gemms[kind] = gemm;
    }
  } catch (const Error&) {
    gemms.clear();
  } catch (const Json::exception&) {
    gemms.clear();
  }
  return gemms;
}

const TunedGemm* GemmAutotuneCache::find(const GemmKey& kind) const {
  const auto found = known_.find(kind);
  return found == known_.end() ? nullptr : &found->second;
}

void GemmAutotuneCache::put(const GemmKey& kind, const TunedGemm& gemm) {
  known_[kind] = gemm;
  fresh_[kind] = gemm;
}

std::string GemmAutotuneCache::text_of(const TunedGemms& gemms) const {
  Json list = Json::array();
  for (const auto& [kind, gemm] : gemms) list.push_back(json_of(kind, gemm));
  return Json{{"format", kFormat}, {"gpu", gpu_}, {"library", library_version_}, {"gemms", list}}
             .dump(1) +
         "\n";
}

std::string GemmAutotuneCache::save() {
  if (file_.empty() || fresh_.empty()) return {};
  try {
    std::filesystem::create_directories(file_.parent_path());
    TunedGemms all = read();
    for (const auto& [kind, gemm] : fresh_) all[kind] = gemm;
    AtomicFile file(file_);
    file.write(text_of(all));
    file.commit();
    fresh_.clear();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace bev::cuda
