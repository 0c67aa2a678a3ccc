// GEMMs with cuBLASLt: described once, run with any operands of the same kind.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/cuda_library.h"
#include "ops/cuda/gemm/gemm_key.h"

namespace bev::cuda {

// The cuBLASLt functions that the program uses, loaded at run time.

struct CublasLt {
  // Throws a Device error if the library cannot be loaded or lacks a function.
  CublasLt();

  CudaLibrary library;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_config = nullptr;
  decltype(&cublasLtMatmulAlgoCheck) algorithm_check = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;

  // Throws a Device error that names `what`, unless status is success.
  void check(cublasStatus_t status, const char* what) const;
};

template <class T>
using LtOwned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;

// cuBLASLt description of one kind of GEMM. cuBLASLt is column-major: our row-major out [m, n] is
// its D of n rows and m columns, D = op(b)^T op(a)^T, so that b is its A and a its B.
struct CublasLtProblem {
  bool fused = false;  // includes the activation or its derivative
  LtOwned<cublasLtMatmulDescOpaque_t> desc{nullptr, nullptr};
  LtOwned<cublasLtMatrixLayoutOpaque_t> a{nullptr, nullptr}, b{nullptr, nullptr},
      c{nullptr, nullptr}, d{nullptr, nullptr};
};

class CublasLtGemm {
 public:
  // `workspace`: kGemmWorkspace bytes that only work on the compute stream uses.
  CublasLtGemm(const DevicePolicy& policy, std::byte* workspace);
  ~CublasLtGemm();
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  size_t version() const { return lt_.version(); }

  // Whether cuBLASLt can compute m. It needs k > 0 and rows that do not overlap. If it accumulates
  // and adds a bias, it rounds the sum in between: allowed for an f32 out only.
  static bool fits(const ops::Matmul& m);

  CublasLtProblem describe(const ops::Matmul& m, bool fused) const;
  // At most `most` algorithms that cuBLASLt proposes, best first.
  std::vector<cublasLtMatmulAlgo_t> candidates(const CublasLtProblem& d, const ops::Matmul& m,
                                               int most) const;
  // Whether an algorithm from another run's cache can be used here.
  bool accepts(const CublasLtProblem& d, const ops::Matmul& m,
               const cublasLtMatmulAlgo_t& algorithm) const;

  // Computes the GEMM and its bias, and the activation if d is fused.
  cublasStatus_t launch(cudaStream_t stream, const CublasLtProblem& d, const ops::Matmul& m,
                        const cublasLtMatmulAlgo_t& algorithm) const;
  void check(cublasStatus_t status, const char* what) const { lt_.check(status, what); }

  std::string name_of(const cublasLtMatmulAlgo_t& algorithm, bool fused) const;

 private:
  LtOwned<cublasLtMatrixLayoutOpaque_t> layout(const ConstTensor& t) const;
  template <class T>
  void set(const CublasLtProblem& d, cublasLtMatmulDescAttributes_t attribute,
           const T& value) const {
    lt_.check(lt_.desc_set(d.desc.get(), attribute, static_cast<const void*>(&value), sizeof value),
              "describing a GEMM");
  }
  void set_pointers(const CublasLtProblem& d, const ops::Matmul& m) const;
  uint32_t config(const cublasLtMatmulAlgo_t& algorithm,
                  cublasLtMatmulAlgoConfigAttributes_t attribute) const;
  uint32_t reductions(const ops::Matmul& m) const;

  CublasLt lt_;
  DevicePolicy policy_;
  cublasLtHandle_t handle_ = nullptr;
  std::byte* workspace_;
};

}  // namespace bev::cuda
