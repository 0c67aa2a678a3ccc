// The ops of each backend, and the table through which they are called: one typed function pointer
// per op of op_list.inc. An op that a backend lacks does not link.
#pragma once

#include "ops/attention.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/lamb_update.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/relative_bias.h"
#include "ops/rope.h"
#include "ops/sampling.h"
#include "ops/update.h"

// The list is included once per expansion.
// NOLINTBEGIN(readability-duplicate-include, bugprone-macro-parentheses)
#define BEV_OP(name, Args) void name(Exec&, const ops::Args&);

// Float64 loops, the definition of every op. Slow on purpose.
namespace bev::reference {
#include "ops/op_list.inc"
}  // namespace bev::reference

// f32 and bf16 in host memory, sums in f32 or better, on the threads of the device. Results do not
// depend on the number of threads.
namespace bev::cpu {
#include "ops/op_list.inc"
}  // namespace bev::cpu

// f32, bf16 and f16 in GPU memory, sums in f32 or better. Every op is ordered on exec.stream and
// returns before it is done. In builds with CUDA.
namespace bev::cuda {
#include "ops/op_list.inc"
bool can_fuse_norm(Exec&, const ops::DecodeGemm&);
}  // namespace bev::cuda

#undef BEV_OP

namespace bev {

// Backends may assume arguments that the checked fronts (ops/*.cpp) have accepted.
struct OpTable {
#define BEV_OP(name, Args) void (*name)(Exec&, const ops::Args&);
#include "ops/op_list.inc"
#undef BEV_OP
  // NOLINTEND(readability-duplicate-include, bugprone-macro-parentheses)
  // Whether decode_gemm() takes these arguments with their norm.
  bool (*can_fuse_norm)(Exec&, const ops::DecodeGemm&);
};

extern const OpTable kReferenceOps, kCpuOps;
extern const OpTable kCudaOps;      // in builds with CUDA
extern const OpTable kNullOps;      // planning: the checked fronts count, nothing is computed
extern const OpTable kNullCudaOps;  // planning: books the workspaces of the cuda backend

}  // namespace bev
