#include "ops/cuda/gemm/cublaslt_gemm.h"

#include <algorithm>

#include "base/check.h"
#include "ops/cuda/workspace.h"

namespace bev::cuda {

namespace {

using ops::Epilogue;
using ops::Transpose;

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

}  // namespace

CublasLtGemm::CublasLtGemm(const DevicePolicy& policy, std::byte* workspace)
    : policy_(policy), workspace_(workspace) {
  lt_.check(lt_.create(&handle_), "starting");
}

CublasLtGemm::~CublasLtGemm() { lt_.destroy(handle_); }

bool CublasLtGemm::fits(const ops::Matmul& m) {
  const bool rounds_twice = m.accumulate && m.bias.present() && m.out.dtype != DType::f32;
  return depth_of(m) > 0 && !rounds_twice && row_stride(m.a) >= m.a.shape[1] &&
         row_stride(m.b) >= m.b.shape[1] && row_stride(m.out) >= m.out.shape[1];
}

LtOwned<cublasLtMatrixLayoutOpaque_t> CublasLtGemm::layout(const ConstTensor& t) const {
  cublasLtMatrixLayout_t made = nullptr;
  lt_.check(lt_.layout_create(&made, type_of(t.dtype), static_cast<uint64_t>(t.shape[1]),
                              static_cast<uint64_t>(t.shape[0]), row_stride(t)),
            "describing a matrix");
  return {made, lt_.layout_destroy};
}

// The vectors and matrices of the epilogue, which change from call to call.
void CublasLtGemm::set_pointers(const CublasLtProblem& d, const ops::Matmul& m) const {
  if (m.bias.present()) {
    set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(m.bias.data));
  }
  if (d.fused && side_of(m).present()) {
    set(d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<const void*>(side_of(m).data));
  }
}

CublasLtProblem CublasLtGemm::describe(const ops::Matmul& m, bool fused) const {
  CublasLtProblem d{.fused = fused};
  const bool may_round = m.a.dtype == DType::f32 && policy_.tf32;
  cublasLtMatmulDesc_t desc = nullptr;
  lt_.check(lt_.desc_create(&desc, may_round ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                            CUDA_R_32F),
            "describing a GEMM");
  d.desc = {desc, lt_.desc_destroy};
  d.a = layout(m.b);
  d.b = layout(m.a);
  d.d = layout(target_of(m, fused));
  d.c = layout(m.addend.present() ? m.addend : ConstTensor(target_of(m, fused)));
  const auto turned = [](Transpose t) {
    return static_cast<int32_t>(t == Transpose::Yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(d, CUBLASLT_MATMUL_DESC_TRANSA, turned(m.tb));
  set(d, CUBLASLT_MATMUL_DESC_TRANSB, turned(m.ta));
  set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue_of(m, fused)));
  if (m.bias.present()) {
    set(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type_of(m.bias.dtype)));
  }
  if (fused && side_of(m).present()) {
    set(d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, row_stride(side_of(m)));
  }
  set_pointers(d, m);  // Their alignment takes part in the choice.
  return d;
}

// Parts of a sum over k are kept in f32: in the workspace, or in out where that is f32. The first
// is a step of its own and has a fixed order.
uint32_t CublasLtGemm::reductions(const ops::Matmul& m) const {
  const bool in_place = m.out.dtype == DType::f32 && !policy_.deterministic;
  return CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
         (in_place ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0);
}

std::vector<cublasLtMatmulAlgo_t> CublasLtGemm::candidates(const CublasLtProblem& d,
                                                           const ops::Matmul& m, int most) const {
  cublasLtMatmulPreference_t made = nullptr;
  lt_.check(lt_.preference_create(&made), "asking for an algorithm");
  const LtOwned<cublasLtMatmulPreferenceOpaque_t> preference{made, lt_.preference_destroy};
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    lt_.check(lt_.preference_set(made, attribute, &value, sizeof value), "asking for an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kGemmWorkspace});
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions(m));
  const uint32_t target = alignment_of(target_of(m, d.fused).data);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(m.b.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(m.a.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
         m.addend.present() ? alignment_of(m.addend.data) : target);
  // The store adds the bias as well; its vectors are of 16 bytes at most.
  const uint32_t bias = alignment_of(m.bias.data);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bias < 16 ? std::min(target, bias) : target);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status =
      lt_.heuristic(handle_, d.desc.get(), d.a.get(), d.b.get(), d.c.get(), d.d.get(), made, most,
                    found.data(), &count);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
  found.resize(static_cast<size_t>(count));
  for (const cublasLtMatmulHeuristicResult_t& candidate : found) {
    if (candidate.state == CUBLAS_STATUS_SUCCESS && candidate.workspaceSize <= kGemmWorkspace)
      algorithms.push_back(candidate.algo);
  }
  return algorithms;
}

bool CublasLtGemm::accepts(const CublasLtProblem& d, const ops::Matmul& m,
                           const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = lt_.algorithm_check(handle_, d.desc.get(), d.a.get(), d.b.get(),
                                                    d.c.get(), d.d.get(), &algorithm, &result);
  const uint32_t scheme = config(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  return status == CUBLAS_STATUS_SUCCESS && result.state == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= kGemmWorkspace && (scheme & ~reductions(m)) == 0;
}

cublasStatus_t CublasLtGemm::launch(cudaStream_t stream, const CublasLtProblem& d,
                                    const ops::Matmul& m,
                                    const cublasLtMatmulAlgo_t& algorithm) const {
  set_pointers(d, m);
  const ConstTensor added = added_to(m, d.fused);
  const float one = 1, kept = added.present() ? 1 : 0;
  std::byte* out = target_of(m, d.fused).data;
  const std::byte* c = added.present() ? added.data : out;
  return lt_.matmul(handle_, d.desc.get(), &one, m.b.data, d.a.get(), m.a.data, d.b.get(), &kept, c,
                    d.c.get(), out, d.d.get(), &algorithm, workspace_, kGemmWorkspace, stream);
}

uint32_t CublasLtGemm::config(const cublasLtMatmulAlgo_t& algorithm,
                              cublasLtMatmulAlgoConfigAttributes_t attribute) const {
  uint32_t value = 0;
  size_t written = 0;
  lt_.algorithm_config(&algorithm, attribute, &value, sizeof value, &written);
  return value;
}

std::string CublasLtGemm::name_of(const cublasLtMatmulAlgo_t& algorithm, bool fused) const {
  return format(
      "cublasLt algorithm {} tile {} stages {} split {}{}",
      config(algorithm, CUBLASLT_ALGO_CONFIG_ID), config(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      config(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      config(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM), fused ? ", activation inside" : "");
}

CublasLt::CublasLt() {
  std::string why;
  library = CudaLibrary::open({format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)}, why);
  BEV_CHECK(
      library.loaded(), Device,
      "cuBLASLt, which multiplies matrices on the GPU, is missing: {}. It comes with the CUDA "
      "toolkit; LD_LIBRARY_PATH may name its folder",
      why);
  library.resolve(create, "cublasLtCreate");
  library.resolve(destroy, "cublasLtDestroy");
  library.resolve(version, "cublasLtGetVersion");
  library.resolve(status_string, "cublasLtGetStatusString");
  library.resolve(matmul, "cublasLtMatmul");
  library.resolve(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.resolve(algorithm_config, "cublasLtMatmulAlgoConfigGetAttribute");
  library.resolve(algorithm_check, "cublasLtMatmulAlgoCheck");
  library.resolve(desc_create, "cublasLtMatmulDescCreate");
  library.resolve(desc_destroy, "cublasLtMatmulDescDestroy");
  library.resolve(desc_set, "cublasLtMatmulDescSetAttribute");
  library.resolve(layout_create, "cublasLtMatrixLayoutCreate");
  library.resolve(layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.resolve(preference_create, "cublasLtMatmulPreferenceCreate");
  library.resolve(preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.resolve(preference_set, "cublasLtMatmulPreferenceSetAttribute");
}

void CublasLt::check(cublasStatus_t status, const char* what) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorKind::Device, format("cuBLASLt, {}: {}", what, status_string(status)));
}

}  // namespace bev::cuda
