// Teams: the threads that share a row of a norm, each with the same number of groups of columns in
// its registers.
#pragma once

#include "ops/cuda/primitives/vector_rows.cuh"

namespace bev::cuda {

// Threads of a block: several small teams or one large one.
constexpr int team_block(int team) { return team < 256 ? 256 : team; }

// Calls f.template operator()<threads, groups of each>() for the smallest team that holds a row;
// false, and no call, where none does or the row is not made of whole groups.
template <class F>
bool visit_team(int64_t width, F&& f) {
  const int64_t groups = width / kGroup;
  if (width % kGroup != 0) return false;
  if (groups <= 8) {
    f.template operator()<8, 1>();
  } else if (groups <= 16) {
    f.template operator()<16, 1>();
  } else if (groups <= 32) {
    f.template operator()<32, 1>();
  } else if (groups <= 96) {
    f.template operator()<32, 3>();
  } else if (groups <= 128) {
    f.template operator()<128, 1>();
  } else if (groups <= 256) {
    f.template operator()<128, 2>();
  } else if (groups <= 512) {
    f.template operator()<256, 2>();
  } else if (groups <= 1024) {
    f.template operator()<512, 2>();
  } else {
    return false;
  }
  return true;
}

// Sums over a team of a block of kThreads. All threads of the team call it together, and of the
// warp where that has several teams; teams of whole warps do not wait for each other.
template <int kTeam, int kThreads = team_block(kTeam)>
class TeamSum {
 public:
  static constexpr int kBlockWarps = kThreads / 32;

  __device__ __forceinline__ explicit TeamSum(float2 (&shared)[2][kBlockWarps]) : shared_(shared) {}

  __device__ __forceinline__ float2 operator()(float2 value) {
#pragma unroll
    for (int offset = (kTeam < 32 ? kTeam : 32) / 2; offset > 0; offset /= 2) {
      value.x += __shfl_xor_sync(kAllLanes, value.x, offset);
      value.y += __shfl_xor_sync(kAllLanes, value.y, offset);
    }
    if constexpr (kTeam > 32) {
      constexpr int kWarps = kTeam / 32;
      // Two arrays in turn: who is late still reads the one that the next sum leaves alone.
      float2* of_warps = shared_[turn_];
      turn_ ^= 1;
      const int warp = threadIdx.x / 32;
      if (threadIdx.x % 32 == 0) of_warps[warp] = value;
      wait_for_team();
      const int first = warp / kWarps * kWarps;
      value = {0.0f, 0.0f};
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        value.x += of_warps[first + w].x;
        value.y += of_warps[first + w].y;
      }
    }
    return value;
  }

 private:
  float2 (&shared_)[2][kBlockWarps];
  int turn_ = 0;

  // A barrier for each team; barrier 0 is __syncthreads().
  __device__ __forceinline__ static void wait_for_team() {
    static_assert(kTeam % 32 == 0 && kThreads / kTeam < 16);
    if constexpr (kTeam == kThreads) {
      __syncthreads();
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(1 + static_cast<int>(threadIdx.x) / kTeam), "n"(kTeam)
                   : "memory");
    }
  }
};

}  // namespace bev::cuda
