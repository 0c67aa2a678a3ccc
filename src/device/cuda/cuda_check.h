// Errors of CUDA calls become Device errors.
#pragma once

#include <cuda_runtime_api.h>

namespace bev::cuda {

// Throws a Device error that names `what`, unless status is success.
void check(cudaError_t status, const char* what);

// After a launch: an error in its configuration.
inline void check_launch(const char* op) { check(cudaGetLastError(), op); }

}  // namespace bev::cuda
