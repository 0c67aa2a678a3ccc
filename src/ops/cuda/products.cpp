#include "ops/cuda/products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "base/philox.h"
#include "ops/cuda/cublas_lt.h"
#include "ops/cuda/facts.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/ops.h"
#include "ops/cuda/simple_product.h"
#include "ops/cuda/workspace.h"

namespace bev::cuda {

namespace {

using ops::Epilogue;
using ops::Transpose;

constexpr int kCandidates = 8;

bool activates(Epilogue e) { return e == Epilogue::Activate || e == Epilogue::BiasActivate; }

// pre_activation or activation_input, whichever there is.
ConstTensor side_of(const ops::Matmul& m) {
  return m.pre_activation.present() ? ConstTensor(m.pre_activation) : m.activation_input;
}

int64_t depth_of(const ops::Matmul& m) { return m.a.shape[m.ta == Transpose::No ? 1 : 0]; }

// The distance of rows; that of a single row is as good as any.
int64_t row_stride(const ConstTensor& t) {
  return t.shape[0] > 1 ? t.stride[0] : std::max<int64_t>(1, t.shape[1]);
}

// The largest power of two, up to 256, that divides the address.
uint32_t alignment_of(const void* data) {
  return uint32_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(data) | 256);
}

// Where the product itself is stored when an activation follows in a kernel of its own.
Tensor target_of(const ops::Matmul& m, bool fused) {
  const bool aside = !fused && activates(m.epilogue) && m.pre_activation.present() && !m.accumulate;
  return aside ? m.pre_activation : m.out;
}

// Everything a choice of algorithm may depend on.
using Kind = Facts<20>;

Kind kind_of(const ops::Matmul& m) {
  const ConstTensor side = side_of(m);
  const auto number = [](auto choice) { return static_cast<int64_t>(choice); };
  return {m.out.shape[0],
          m.out.shape[1],
          depth_of(m),
          number(m.ta),
          number(m.tb),
          row_stride(m.a),
          row_stride(m.b),
          row_stride(m.out),
          side.present() ? row_stride(side) : 0,
          number(m.a.dtype),
          number(m.out.dtype),
          number(m.epilogue),
          number(m.activation),
          number(m.accumulate),
          number(m.pre_activation.present()),
          alignment_of(m.a.data),
          alignment_of(m.b.data),
          alignment_of(m.out.data),
          alignment_of(m.bias.data),
          alignment_of(side.data)};
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: break;
  }
  throw Error(ErrorKind::Usage, format("matmul: the cuda device has f32, bf16 and f16, not {}; the "
                                       "reference device has f64",
                                       name_of(dtype)));
}

cublasLtEpilogue_t epilogue_of(const ops::Matmul& m, bool fused) {
  const bool bias = m.bias.present(), keeps = m.pre_activation.present();
  if (!fused) return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (m.epilogue == Epilogue::ActivateBackward) return CUBLASLT_EPILOGUE_DGELU;
  if (keeps) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

template <class T>
using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

// How one kind of product is computed. The library reads matrices by columns: our row-major out
// [m, n] is its D of n rows and m columns, D = op(b)^T op(a)^T, so that b is its A and a its B.
struct Plan {
  bool by_library = false;  // else by the simple kernel
  bool fused = false;       // the activation too
  Owned<cublasLtMatmulDescOpaque_t> desc{nullptr, nullptr};
  Owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, nullptr}, b{nullptr, nullptr}, d{nullptr, nullptr};
  cublasLtMatmulAlgo_t algorithm{};
  std::string name;  // for the dispatch log
};

}  // namespace

bool fuses_activation(const ops::Matmul& m, const DevicePolicy& policy) {
  if (!activates(m.epilogue) && m.epilogue != Epilogue::ActivateBackward) return false;
  // The library's GELU is of the tanh form and may be computed with few bits, which f32 would show.
  if (policy.deterministic || m.activation != Activation::GeluTanh || m.accumulate ||
      m.out.dtype == DType::f32) {
    return false;
  }
  // What the library asks of the auxiliary matrix.
  const ConstTensor side = side_of(m);
  return !side.present() || (row_stride(side) % 8 == 0 && alignment_of(side.data) >= 16);
}

struct Products::State {
  explicit State(Gpu& device) : gpu(device) {
    if (!runs_from_ptx_only()) lt.check(lt.create(&handle), "starting");
    workspace = gpu.allocate(kProductWorkspace, "workspace");
  }
  ~State() {
    gpu.release(workspace, kProductWorkspace, "workspace");
    plans.clear();
    if (handle != nullptr) lt.destroy(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Runs the product as well: an algorithm counts as found when its call succeeds.
  Plan find(Exec& ex, const ops::Matmul& m);
  void describe(Plan& plan, const ops::Matmul& m) const;
  int candidates(const Plan& plan, const ops::Matmul& m,
                 std::array<cublasLtMatmulHeuristicResult_t, kCandidates>& found) const;
  bool choose(Exec& ex, Plan& plan, const ops::Matmul& m) const;
  cublasStatus_t launch(Exec& ex, const Plan& plan, const ops::Matmul& m) const;
  std::string name_of_choice(const Plan& plan, size_t workspace_size) const;

  Owned<cublasLtMatrixLayoutOpaque_t> layout(const ConstTensor& t) const {
    cublasLtMatrixLayout_t made = nullptr;
    lt.check(lt.layout_create(&made, type_of(t.dtype), static_cast<uint64_t>(t.shape[1]),
                              static_cast<uint64_t>(t.shape[0]), row_stride(t)),
             "describing a matrix");
    return {made, lt.layout_destroy};
  }
  template <class T>
  void set(const Plan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    lt.check(
        lt.desc_set(plan.desc.get(), attribute, static_cast<const void*>(&value), sizeof value),
        "describing a product");
  }
  // The vectors and matrices of the epilogue, which change from call to call.
  void set_pointers(const Plan& plan, const ops::Matmul& m) const {
    if (m.bias.present()) {
      set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(m.bias.data));
    }
    if (plan.fused && side_of(m).present()) {
      set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
          static_cast<const void*>(side_of(m).data));
    }
  }

  Gpu& gpu;
  CublasLt lt;
  cublasLtHandle_t handle = nullptr;
  std::byte* workspace = nullptr;
  std::unordered_map<Kind, Plan, FactsHash> plans;
};

void Products::State::describe(Plan& plan, const ops::Matmul& m) const {
  const bool may_round = m.a.dtype == DType::f32 && gpu.policy().tf32;
  cublasLtMatmulDesc_t desc = nullptr;
  lt.check(lt.desc_create(&desc, may_round ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                          CUDA_R_32F),
           "describing a product");
  plan.desc = {desc, lt.desc_destroy};
  plan.a = layout(m.b);
  plan.b = layout(m.a);
  plan.d = layout(target_of(m, plan.fused));
  const auto turned = [](Transpose t) {
    return static_cast<int32_t>(t == Transpose::Yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, turned(m.tb));
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, turned(m.ta));
  set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue_of(m, plan.fused)));
  if (m.bias.present()) {
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(m.bias.dtype)));
  }
  if (plan.fused && side_of(m).present()) {
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, row_stride(side_of(m)));
  }
  set_pointers(plan, m);  // Their alignment takes part in the choice.
}

// What the library proposes, best first.
int Products::State::candidates(
    const Plan& plan, const ops::Matmul& m,
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates>& found) const {
  cublasLtMatmulPreference_t made = nullptr;
  lt.check(lt.preference_create(&made), "asking for an algorithm");
  const Owned<cublasLtMatmulPreferenceOpaque_t> preference{made, lt.preference_destroy};
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    lt.check(lt.preference_set(made, attribute, &value, sizeof value), "asking for an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kProductWorkspace});
  // Parts of a sum over k are kept in f32: in the workspace, or in out where that is f32. The first
  // is a step of its own and has a fixed order.
  const bool in_place = m.out.dtype == DType::f32 && !gpu.policy().deterministic;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                               (in_place ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0)));
  const uint32_t target = alignment_of(target_of(m, plan.fused).data);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(m.b.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(m.a.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, target);
  // The store adds the bias as well; its vectors are of 16 bytes at most.
  const uint32_t bias = alignment_of(m.bias.data);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bias < 16 ? std::min(target, bias) : target);
  int count = 0;
  const cublasStatus_t status =
      lt.heuristic(handle, plan.desc.get(), plan.a.get(), plan.b.get(), plan.d.get(), plan.d.get(),
                   made, kCandidates, found.data(), &count);
  return status == CUBLAS_STATUS_SUCCESS ? count : 0;
}

// The one place where an algorithm is chosen: the first proposal that runs.
bool Products::State::choose(Exec& ex, Plan& plan, const ops::Matmul& m) const {
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  const int count = candidates(plan, m, found);
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& candidate = found[static_cast<size_t>(i)];
    if (candidate.state != CUBLAS_STATUS_SUCCESS || candidate.workspaceSize > kProductWorkspace) {
      continue;
    }
    plan.algorithm = candidate.algo;
    if (launch(ex, plan, m) != CUBLAS_STATUS_SUCCESS) continue;
    plan.name = name_of_choice(plan, candidate.workspaceSize);
    return true;
  }
  return false;
}

Plan Products::State::find(Exec& ex, const ops::Matmul& m) {
  // A sum of nothing is not a product to the library; and a bias beside an addend is added after a
  // first rounding.
  const bool rounds_twice = m.accumulate && m.bias.present() && m.out.dtype != DType::f32;
  const bool fit = handle != nullptr && depth_of(m) > 0 && !rounds_twice &&
                   row_stride(m.a) >= m.a.shape[1] && row_stride(m.b) >= m.b.shape[1] &&
                   row_stride(m.out) >= m.out.shape[1];
  for (const bool fused : {true, false}) {
    if (!fit || (fused && !fuses_activation(m, gpu.policy()))) continue;
    Plan plan;
    plan.by_library = true;
    plan.fused = fused;
    describe(plan, m);
    if (choose(ex, plan, m)) return plan;
  }
  Plan plan;
  plan.name = "own kernel";
  simple_product(ex, m, target_of(m, false));
  return plan;
}

cublasStatus_t Products::State::launch(Exec& ex, const Plan& plan, const ops::Matmul& m) const {
  set_pointers(plan, m);
  const float one = 1, kept = m.accumulate ? 1 : 0;
  std::byte* d = target_of(m, plan.fused).data;
  return lt.matmul(handle, plan.desc.get(), &one, m.b.data, plan.a.get(), m.a.data, plan.b.get(),
                   &kept, d, plan.d.get(), d, plan.d.get(), &plan.algorithm, workspace,
                   kProductWorkspace, stream_of(ex));
}

std::string Products::State::name_of_choice(const Plan& plan, size_t workspace_size) const {
  const auto config = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    uint32_t value = 0;
    size_t written = 0;
    lt.algorithm_config(&plan.algorithm, attribute, &value, sizeof value, &written);
    return value;
  };
  return format("cublasLt algorithm {} tile {} stages {} split {} workspace {}{}",
                config(CUBLASLT_ALGO_CONFIG_ID), config(CUBLASLT_ALGO_CONFIG_TILE_ID),
                config(CUBLASLT_ALGO_CONFIG_STAGES_ID), config(CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                workspace_size, plan.fused ? ", activation inside" : "");
}

Products::Products(Gpu& gpu) : state_(std::make_unique<State>(gpu)) {}
Products::~Products() = default;

std::byte* Products::workspace() const { return state_->workspace; }

uint64_t Products::choices_hash() const {
  // Independent of the order in which products were met.
  uint64_t sum = 0;
  for (const auto& [kind, plan] : state_->plans) {
    uint64_t hash = FactsHash{}(kind);
    for (const uint64_t word : plan.algorithm.data) hash = mix_key(hash, word);
    sum += hash;
  }
  return sum;
}

void Products::run(Exec& ex, const ops::Matmul& m) {
  State& s = *state_;
  BEV_CHECK(ex.stream.index() == ex.device.compute_stream().index(), Internal,
            "matmul: products share one workspace, which belongs to the compute stream");
  const Kind kind = kind_of(m);
  auto known = s.plans.find(kind);
  if (known == s.plans.end()) {
    known = s.plans.emplace(kind, s.find(ex, m)).first;
  } else if (known->second.by_library) {
    s.lt.check(s.launch(ex, known->second, m), "a product");
  } else {
    simple_product(ex, m, target_of(m, false));
  }
  const Plan& plan = known->second;
  DispatchLog& log = ex.device.dispatch();
  if (log.enabled()) {
    log.note(format("matmul m={} n={} k={} {}{} {} to {}", kind[0], kind[1], kind[2],
                    m.ta == Transpose::Yes ? 'T' : 'N', m.tb == Transpose::Yes ? 'T' : 'N',
                    name_of(m.a.dtype), name_of(m.out.dtype)),
             plan.name, plan.by_library ? "" : "cublasLt: no algorithm for these operands");
  }
  if (plan.fused) return;
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

}  // namespace bev::cuda
