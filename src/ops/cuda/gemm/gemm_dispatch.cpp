#include "ops/cuda/gemm/gemm_dispatch.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "base/philox.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/gpu_info.h"
#include "ops/cuda/gemm/cublaslt_gemm.h"
#include "ops/cuda/gemm/gemm_autotune.h"
#include "ops/cuda/gemm/gemm_kernels.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/workspace.h"
#include "ops/matmul.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

using ops::Epilogue;
using ops::Transpose;

// Number of cuBLASLt proposals to try before the fallback.
constexpr int kAttempts = 8;

int current_gpu() {
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "asking for the GPU");
  return ordinal;
}

// How one kind of GEMM is computed.
struct Plan {
  std::optional<CublasLtProblem> description;  // absent: gemm_fallback()
  cublasLtMatmulAlgo_t algorithm{};
  std::string name{};  // for the dispatch log
  bool fused() const { return description && description->fused; }
};

}  // namespace

struct GemmDispatch::State {
  explicit State(Gpu& device) : gpu(device), workspace(gpu.allocate(kGemmWorkspace, "workspace")) {
    if (runs_from_ptx_only()) return;
    library.emplace(gpu.policy(), workspace);
    cache.emplace(gpu.policy().cache, gpu_name(current_gpu()), library->version());
    tuner.emplace(*library, gpu);
  }
  ~State() {
    plans.clear();
    tuner.reset();
    library.reset();
    gpu.release(workspace, kGemmWorkspace, "workspace");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // These also run the GEMM: an algorithm is accepted when its call succeeds.
  Plan find(Exec& ex, const ops::Matmul& m, const GemmKey& kind);
  std::optional<Plan> remembered(Exec& ex, const ops::Matmul& m, const GemmKey& kind);
  std::optional<Plan> tuned(const ops::Matmul& m, const GemmKey& kind);
  std::optional<Plan> proposed(Exec& ex, const ops::Matmul& m) const;

  Plan plan_of(CublasLtProblem description, const cublasLtMatmulAlgo_t& algorithm) const {
    Plan plan{.description = std::move(description), .algorithm = algorithm};
    plan.name = library->name_of(algorithm, plan.fused());
    return plan;
  }
  // Applies the activation or its derivative after the GEMM, unless it was fused.
  void finish(Exec& ex, bool fused, const ops::Matmul& m) const;

  Gpu& gpu;
  std::byte* workspace;
  std::optional<CublasLtGemm> library;
  std::optional<GemmAutotuneCache> cache;
  std::optional<GemmAutotuner> tuner;
  std::unordered_map<GemmKey, Plan, PlanKeyHash> plans;
  int64_t kinds_tuned = 0, kinds_remembered = 0;
};

std::optional<Plan> GemmDispatch::State::remembered(Exec& ex, const ops::Matmul& m,
                                                    const GemmKey& kind) {
  const TunedGemm* known = cache->find(kind);
  if (known == nullptr || (known->fused && !may_fuse(m, gpu.policy()))) return std::nullopt;
  CublasLtProblem description = library->describe(m, known->fused);
  cublasLtMatmulAlgo_t algorithm{};
  std::copy(known->algorithm.begin(), known->algorithm.end(), std::begin(algorithm.data));
  if (!library->accepts(description, m, algorithm) ||
      library->launch(stream_of(ex), description, m, algorithm) != CUBLAS_STATUS_SUCCESS) {
    return std::nullopt;
  }
  ++kinds_remembered;
  Plan plan = plan_of(std::move(description), algorithm);
  plan.name += ", remembered";
  return plan;
}

// Prefers a fused activation: it costs less than another pass over the result.
std::optional<Plan> GemmDispatch::State::tuned(const ops::Matmul& m, const GemmKey& kind) {
  for (const bool fused : {true, false}) {
    if (fused && !may_fuse(m, gpu.policy())) continue;
    CublasLtProblem description = library->describe(m, fused);
    const auto fastest = tuner->fastest(description, m);
    if (!fastest) continue;
    TunedGemm known{.fused = fused, .seconds = fastest->seconds};
    std::copy(std::begin(fastest->algorithm.data), std::end(fastest->algorithm.data),
              known.algorithm.begin());
    cache->put(kind, known);
    ++kinds_tuned;
    Plan plan = plan_of(std::move(description), fastest->algorithm);
    plan.name += format(", timed: {:.1f} us", 1e6 * fastest->seconds);
    return plan;
  }
  return std::nullopt;
}

std::optional<Plan> GemmDispatch::State::proposed(Exec& ex, const ops::Matmul& m) const {
  for (const bool fused : {true, false}) {
    if (fused && !may_fuse(m, gpu.policy())) continue;
    CublasLtProblem description = library->describe(m, fused);
    for (const cublasLtMatmulAlgo_t& algorithm : library->candidates(description, m, kAttempts)) {
      if (library->launch(stream_of(ex), description, m, algorithm) == CUBLAS_STATUS_SUCCESS)
        return plan_of(std::move(description), algorithm);
    }
  }
  return std::nullopt;
}

Plan GemmDispatch::State::find(Exec& ex, const ops::Matmul& m, const GemmKey& kind) {
  if (library && CublasLtGemm::fits(m)) {
    if (auto plan = remembered(ex, m, kind)) return std::move(*plan);
    const bool may_tune =
        gpu.is_autotuning() && gpu.policy().autotunes && !gpu.policy().deterministic;
    if (may_tune && tuner->has_time()) {
      if (auto plan = tuned(m, kind)) return std::move(*plan);
    }
    if (auto plan = proposed(ex, m)) return std::move(*plan);
  }
  gemm_fallback(ex, m, target_of(m, false));
  Plan plan;
  plan.name = "own kernel";
  return plan;
}

void GemmDispatch::State::finish(Exec& ex, bool fused, const ops::Matmul& m) const {
  if (fused) return;
  if (activates(m.epilogue)) {
    if (m.pre_activation.present() && m.accumulate)
      copy(ex, {.in = m.out, .out = m.pre_activation});
    const ConstTensor x = m.pre_activation.present() ? m.pre_activation : m.out;
    activate(ex, {.activation = m.activation, .x = x, .y = m.out});
  } else if (m.epilogue == Epilogue::ActivateBackward) {
    activate_backward(
        ex, {.activation = m.activation, .dy = m.out, .x = m.activation_input, .dx = m.out});
  }
}

GemmDispatch::GemmDispatch(Gpu& gpu) : state_(std::make_unique<State>(gpu)) {}
GemmDispatch::~GemmDispatch() = default;

std::byte* GemmDispatch::workspace() const { return state_->workspace; }

uint64_t GemmDispatch::choices_hash() const {
  // Independent of the order in which GEMMs first ran.
  uint64_t sum = 0;
  for (const auto& [kind, plan] : state_->plans) {
    uint64_t hash = PlanKeyHash{}(kind);
    for (const uint64_t word : plan.algorithm.data) hash = mix_key(hash, word);
    sum += hash;
  }
  return sum;
}

std::string GemmDispatch::end_tuning() {
  State& s = *state_;
  if (!s.cache || s.kinds_tuned + s.kinds_remembered == 0) return {};
  const std::string why_not = s.cache->save();
  std::string text = format("{} kinds of GEMMs remembered, {} timed in {:.1f} s",
                            s.kinds_remembered, s.kinds_tuned, s.tuner->spent());
  if (!why_not.empty()) {
    text += format("; not kept: {}", why_not);
  } else if (s.kinds_tuned > 0 && !s.cache->file().empty()) {
    text += format("; kept in {}", s.cache->file().string());
  }
  return text;
}

namespace {

void note(Exec& ex, const ops::Matmul& m, const std::string& chosen, const char* why) {
  DispatchLog& log = ex.device.dispatch();
  if (!log.enabled()) return;
  log.note(
      format("matmul m={} n={} k={} {}{} {} to {}{}", m.out.shape[0], m.out.shape[1], depth_of(m),
             m.ta == Transpose::Yes ? 'T' : 'N', m.tb == Transpose::Yes ? 'T' : 'N',
             name_of(m.a.dtype), name_of(m.out.dtype), m.accumulate ? ", added" : ""),
      chosen, why);
}

}  // namespace

void GemmDispatch::run(Exec& ex, const ops::Matmul& m, const InferenceWeights& weights) {
  if (fits_small_m(m)) {
    gemm_small_m(ex, m, weights);
    note(ex, m,
         weights.norm.present() ? "own kernel for few rows, with the norm"
                                : "own kernel for few rows",
         "");
    return;
  }
  if (fits_medium_m(ex, m)) {
    gemm_medium_m(ex, m, weights);
    note(ex, m, "own kernel for some dozens of rows", "");
    return;
  }
  State& s = *state_;
  BEV_CHECK(ex.stream.index() == ex.device.compute_stream().index(), Internal,
            "matmul: GEMMs share one workspace, which belongs to the compute stream");
  const GemmKey kind = kind_of(m, s.gpu.policy());
  auto known = s.plans.find(kind);
  if (known == s.plans.end()) {
    known = s.plans.emplace(kind, s.find(ex, m, kind)).first;
  } else if (known->second.description) {
    s.library->check(
        s.library->launch(stream_of(ex), *known->second.description, m, known->second.algorithm),
        "a GEMM");
  } else {
    gemm_fallback(ex, m, target_of(m, false));
  }
  const Plan& plan = known->second;
  note(ex, m, plan.name, plan.description ? "" : "cublasLt: no algorithm for these operands");
  s.finish(ex, plan.fused(), m);
}

void matmul(Exec& ex, const ops::Matmul& m) {
  GemmDispatch& gemm = gpu_of(ex).gemm();
  // Both run on the compute stream, one after the other, so that they can share the GEMM workspace.
  if (m.dbias.present()) {
    add_row_sums(ex, m.a, m.ta, m.dbias, gemm.workspace(), kGemmWorkspace);
  }
  if (m.out.shape.elements() > 0) gemm.run(ex, m);
}

void decode_gemm(Exec& ex, const ops::DecodeGemm& d) {
  if (d.gemm.out.shape.elements() == 0) return;
  gpu_of(ex).gemm().run(ex, d.gemm, {.constant = true, .norm = d.norm});
}

bool can_fuse_norm(Exec&, const ops::DecodeGemm& d) { return fits_small_m(d.gemm, d.norm); }

}  // namespace bev::cuda
