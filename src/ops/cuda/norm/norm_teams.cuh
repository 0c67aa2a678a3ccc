// Teams: the threads that share a row of a norm. Each thread has the same number of groups of
// columns in registers.
#pragma once

#include <iterator>
#include <utility>

#include "ops/cuda/primitives/vector_rows.cuh"

namespace bev::cuda {

// Threads of a block: several small teams or one large one.
constexpr int team_block(int team) { return team < 256 ? 256 : team; }

struct Team {
  int threads, groups;  // groups of columns per thread
};

// The teams for rows of up to most_groups groups of columns. Backward has more sizes: its threads
// keep sums over rows in registers, which idle threads would take as well.
struct TeamSizes {
  int most_groups;
  Team forward, backward;
  bool narrow = false;  // for rows of the width of a head, see visit_team()
};
constexpr TeamSizes kTeamSizes[] = {
    {8, {8, 1}, {8, 1}, true},     // 64 columns
    {16, {16, 1}, {16, 1}, true},  // 128
    {32, {32, 1}, {32, 1}, true},  // 256
    {96, {32, 3}, {32, 3}},        // 768
    {128, {128, 1}, {64, 2}},      // 1024
    {192, {128, 2}, {96, 2}},      // 1536
    {256, {128, 2}, {128, 2}},     // 2048
    {320, {256, 2}, {160, 2}},     // 2560
    {512, {256, 2}, {256, 2}},     // 4096
    {1024, {512, 2}, {512, 2}},    // 8192
};

// Calls f.template operator()<threads, groups per thread>() for the smallest team that holds a row.
// Returns false without a call if no team holds it or it does not consist of whole groups. kTeam:
// forward or backward. Head norms have neither a residual nor sums of dx: kernels with these leave
// out the narrow teams (kNarrow is false), and the smallest other team serves their narrow rows,
// which only tiny models have.
template <Team TeamSizes::* kTeam, bool kNarrow, class F>
bool visit_team(int64_t width, F&& f) {
  if (width % kGroup != 0) return false;
  const auto serves = [&]<size_t kSize>() {
    constexpr TeamSizes kSizes = kTeamSizes[kSize];
    if constexpr (kNarrow || !kSizes.narrow) {
      if (width > int64_t{kSizes.most_groups} * kGroup) return false;
      constexpr Team kChosen = kSizes.*kTeam;
      f.template operator()<kChosen.threads, kChosen.groups>();
      return true;
    } else {
      return false;
    }
  };
  return [&]<size_t... kSize>(std::index_sequence<kSize...>) {
    return (serves.template operator()<kSize>() || ...);
  }(std::make_index_sequence<std::size(kTeamSizes)>());
}

// Sums over a team of a block of kThreads. All threads of the team call it together; if a warp has
// several teams, all threads of the warp. Teams of whole warps do not wait for each other.
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
      // Alternates two arrays: a late thread may still read one while the next sum writes the
      // other.
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
