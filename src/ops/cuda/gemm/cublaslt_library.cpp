#include "ops/cuda/gemm/cublaslt_library.h"

#include "base/check.h"

namespace bev::cuda {

CublasLt::CublasLt() {
  std::string why;
  library = SharedLibrary::open({format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)}, why);
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
