#include "ops/cpu/workspace.h"

#include <algorithm>

#include "ops/cpu/attention/attention_problem.h"
#include "ops/cpu/gemm/gemm.h"

namespace bev::cpu {

size_t workspace_bytes() { return std::max(gemm_workspace_bytes(), attention_workspace_bytes()); }

}  // namespace bev::cpu
