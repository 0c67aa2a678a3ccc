// Matrix multiplication by a warp group, four warps that act together (sm_90a). The tensor cores
// read the operands from shared memory, asynchronously to other work.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "ops/cuda/primitives/mma.cuh"

namespace bev::cuda {

// Descriptor of an operand in shared memory: blocks of eight adjacent rows of 64 16-bit elements
// (128 bytes), aligned to 1024 bytes, with the 128-byte swizzle: 16-byte chunk c of row r is stored
// at chunk c ^ r % 8. `tile` may begin at any even chunk of the first row.
__device__ __forceinline__ uint64_t group_operand(const void* tile) {
  constexpr uint64_t kSwizzled = uint64_t{1} << 62, kEightRows = uint64_t{1024 / 16} << 32;
  constexpr uint64_t kUnused = uint64_t{1} << 16;
  return kSwizzled | kEightRows | kUnused | (shared_address(tile) & 0x3FFFF) >> 4;
}

// Makes the threads' writes to shared memory visible to wgmma.
__device__ __forceinline__ void fence_proxy_async() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Required between other uses of the sums and wgmma instructions that add to them.
__device__ __forceinline__ void wgmma_fence() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wgmma_commit_group() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Waits until at most the latest kLeft committed groups are in flight.
template <int kLeft>
__device__ __forceinline__ void wgmma_wait_group() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
#endif
}

// sums [64, 64] += a b^T for 16 elements of depth. Of warp w, g = lane / 4, t = lane % 4:
// sums[j][0, 1] are those of row 16 w + g and columns 8 j + 2 t, + 1; sums[j][2, 3] of row + 8.
template <class T>
__device__ __forceinline__ void group_multiply_add(float (&s)[8][4], uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define BEV_SUMS(j) "+f"(s[j][0]), "+f"(s[j][1]), "+f"(s[j][2]), "+f"(s[j][3])
#define BEV_WGMMA(type)                                                                            \
  asm volatile(                                                                                    \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                  \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "         \
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, "          \
      "1, 1, 1, 0, 0;"                                                                             \
      : BEV_SUMS(0), BEV_SUMS(1), BEV_SUMS(2), BEV_SUMS(3), BEV_SUMS(4), BEV_SUMS(5), BEV_SUMS(6), \
        BEV_SUMS(7)                                                                                \
      : "l"(a), "l"(b))
  if constexpr (std::is_same_v<T, __half>) {
    BEV_WGMMA("f16");
  } else {
    BEV_WGMMA("bf16");
  }
#undef BEV_WGMMA
#undef BEV_SUMS
#endif
}

}  // namespace bev::cuda
