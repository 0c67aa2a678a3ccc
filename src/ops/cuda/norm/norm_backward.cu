// The backward of norms. With xhat = (x - mean) * rstd and g = dy * weight (RmsNorm: mean = 0 and
// no mean(g) term):
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) [+ dresidual]
//   dweight += sum over rows of dy * xhat,  dbias += sum over rows of dy,  dx_sums += that of dx
// The sums over rows are made in two stages: every block keeps its own, then they are added up.
#include "ops/cuda/norm/norm_row_ring.cuh"
#include "ops/cuda/norm/norm_teams.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/workspace.h"
#include "ops/norm.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kLoopThreads = 256;

template <class T>
struct BackwardRows {
  Rows<const T> dy, x, dresidual;
  Rows<T> dx;
  const T* weight;
  const float *mean, *rstd;  // RmsNorm: mean is null
  int64_t rows, width;
  bool adds;     // dresidual is there
  bool biased;   // dbias is wanted
  bool summed;   // dx_sums are wanted
  float* parts;  // [parts, sums(), width]: dweight, then dbias and dx_sums where they are wanted

  __host__ __device__ __forceinline__ int sums() const {
    return 1 + (biased ? 1 : 0) + (summed ? 1 : 0);
  }
  __device__ __forceinline__ float* part(int64_t which) const {
    return parts + which * sums() * width;
  }
  __device__ __forceinline__ float* dx_part(int64_t which) const {
    return part(which) + (biased ? 2 : 1) * width;
  }
};

// The most threads of a block, which has a multiprocessor for itself: as many whole teams as find
// registers for their sums over rows and for a row.
constexpr int backward_block(int team, int groups) {
  const int most = groups == 1 ? 768 : groups == 2 ? 512 : 384;
  return most / team * team;
}

// Adds up what the teams of a block have, in order, and writes it as the block's part.
template <int kTeam, int kGroups>
class TeamParts {
  // From a column to the one beside it: 4 banks, so that the lanes of a warp meet no bank twice,
  // neither writing, where a team is a warp or more, nor reading.
  static constexpr int kStep = (kTeam * kGroups + 31) / 32 * 32 + 4;

 public:
  static constexpr size_t kTeamBytes = kGroup * kStep * sizeof(float);

  // `memory` has kTeamBytes for every team of the block.
  __device__ __forceinline__ explicit TeamParts(unsigned char* memory)
      : shared_(reinterpret_cast<float*>(memory)) {}

  // All threads of the block call it together.
  __device__ __forceinline__ void write(const float (&sums)[kGroups][kGroup], int64_t width,
                                        float* part) {
    const int member = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
    const int teams = blockDim.x / kTeam;
    __syncthreads();  // the memory was used before
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        shared_[(team * kGroup + j) * kStep + g * kTeam + member] = sums[g][j];
      }
    }
    __syncthreads();
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
      const float* of_team = shared_ + column % kGroup * kStep + column / kGroup;
      float sum = 0;
      for (int t = 0; t < teams; ++t) sum += of_team[t * kGroup * kStep];
      part[column] = sum;
    }
  }

 private:
  float* shared_;
};

struct RowStatistics {
  float mean = 0, rstd = 0;
};

// Reads dy, x and dresidual once and writes dx once. A row is in the registers of its team while it
// is computed, the team's next ones are on their way into shared memory, and every thread keeps the
// sums over rows of its own columns. dx may be dy or dresidual: a row is read and written by one
// team, and its copies have arrived before it is written.
template <class T, int kTeam, int kGroups, bool kCentred, bool kSummed>
__global__ void __launch_bounds__(backward_block(kTeam, kGroups), 1)
    norm_backward_teams(BackwardRows<T> n) {
  extern __shared__ __align__(kWideBytes) unsigned char memory[];
  __shared__ float2 shared[2][backward_block(kTeam, kGroups) / 32];
  using Ring = RowRing<T, kGroups>;
  auto* weight = reinterpret_cast<Group<T>*>(memory);
  unsigned char* after_weight = memory + kTeam * kGroups * sizeof(Group<T>);
  Ring ring(after_weight);
  TeamSum<kTeam, backward_block(kTeam, kGroups)> team_sum(shared);
  const int member = threadIdx.x % kTeam, team = threadIdx.x / kTeam, teams = blockDim.x / kTeam;
  const float per_width = 1.0f / static_cast<float>(n.width);
  const int width = static_cast<int>(n.width), first = member * kGroup;
  constexpr int kStep = kTeam * kGroup;  // from a group of the thread to its next
  const auto is_there = [&](int g) { return first + g * kStep < width; };

  for (int i = threadIdx.x; i < kTeam * kGroups; i += blockDim.x) {
    weight[i] = i * kGroup < width ? load_wide(n.weight + i * kGroup) : Group<T>{};
  }
  __syncthreads();
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (!is_there(g)) {
      ring.set_everywhere(Ring::Dy, g, {});
      ring.set_everywhere(Ring::X, g, {});
    }
    if (!is_there(g) || !n.adds) ring.set_everywhere(Ring::Residual, g, {});
  }
  const auto copy = [&](typename Ring::Operand operand, int later, const T* from) {
    from += first;
    asm volatile("" : "+l"(from));  // computed once, not again for each group
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (is_there(g)) copy_group(&ring.later(later, operand, g), from + g * kStep);
    }
  };
  const auto ask = [&](int64_t row, int later) {
    if (row < n.rows) {
      copy(Ring::Dy, later, n.dy[row]);
      copy(Ring::X, later, n.x[row]);
      if (n.adds) copy(Ring::Residual, later, n.dresidual[row]);
    } else {  // computed all the same, with other teams of the block
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        ring.later(later, Ring::Dy, g) = {};
        ring.later(later, Ring::X, g) = {};
        ring.later(later, Ring::Residual, g) = {};
      }
    }
    end_batch();
  };
  const auto statistics_of = [&](int64_t row) {
    RowStatistics of_row;
    if (row >= n.rows) return of_row;
    of_row.rstd = n.rstd[row];
    if constexpr (kCentred) of_row.mean = n.mean[row];
    return of_row;
  };

  float dweight[kGroups][kGroup] = {}, dbias[kGroups][kGroup] = {}, dx_sums[kGroups][kGroup] = {};
  const int64_t step = int64_t{gridDim.x} * teams;
  int64_t row = int64_t{blockIdx.x} * teams + team;
#pragma unroll
  for (int later = 0; later < kRowsAhead; ++later) ask(row + later * step, later);
  RowStatistics next = statistics_of(row);
  // The teams of a block go on together until the first of them, whose rows come first, is done:
  // those of a warp have to, and racecheck takes barriers for missing where teams have met at those
  // of their own unequally often.
  for (; row - team < n.rows; row += step) {
    ask(row + kRowsAhead * step, kRowsAhead);
    const float rstd = next.rstd, shift = -next.mean * rstd;
    next = statistics_of(row + step);
    wait_for_batches<kRowsAhead>();
    float xhat[kGroups][kGroup], of_norm[kGroups][kGroup];
    float2 sums{0.0f, 0.0f};
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const Group<T> dy = ring(Ring::Dy, g), x = ring(Ring::X, g), w = weight[g * kTeam + member];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        xhat[g][j] = kCentred ? fmaf(x[j], rstd, shift) : x[j] * rstd;
        of_norm[g][j] = dy[j] * w[j];
        if constexpr (kCentred) sums.x += of_norm[g][j];
        sums.y += of_norm[g][j] * xhat[g][j];
        dweight[g][j] += dy[j] * xhat[g][j];
        if constexpr (kCentred) dbias[g][j] += dy[j];
      }
    }
    sums = team_sum(sums);
    const float level = -rstd * (sums.x * per_width), slope = -rstd * (sums.y * per_width);
    T* dx_row = n.dx[row < n.rows ? row : 0] + first;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const Group<T> residual = ring(Ring::Residual, g);
      float dx[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float flat = kCentred ? residual[j] + level : residual[j];
        dx[j] = fmaf(of_norm[g][j], rstd, fmaf(xhat[g][j], slope, flat));
        if constexpr (kSummed) dx_sums[g][j] += dx[j];
      }
      if (row < n.rows && is_there(g)) {
        store_wide(Group<T>::of(dx), dx_row + g * kStep);
      }
    }
    ring.advance();
  }

  using Parts = TeamParts<kTeam, kGroups>;
  static_assert(Parts::kTeamBytes <= kTeam * Ring::kThreadBytes);
  Parts parts(after_weight);
  parts.write(dweight, n.width, n.part(blockIdx.x));
  if constexpr (kCentred) {
    if (n.biased) parts.write(dbias, n.width, n.part(blockIdx.x) + n.width);
  }
  if constexpr (kSummed) parts.write(dx_sums, n.width, n.dx_part(blockIdx.x));
}

// Any alignment and width, first step: block (strip of columns, part), a thread for each column.
template <class T>
__global__ void __launch_bounds__(kLoopThreads) weight_gradient_parts(BackwardRows<T> n) {
  const int64_t column = int64_t{blockIdx.x} * kLoopThreads + threadIdx.x;
  if (column >= n.width) return;
  float dweight = 0, dbias = 0;
  for (int64_t row = blockIdx.y; row < n.rows; row += gridDim.y) {
    const float d = to_float(n.dy[row][column]);
    const float mean = n.mean != nullptr ? n.mean[row] : 0.0f;
    dweight += d * ((to_float(n.x[row][column]) - mean) * n.rstd[row]);
    dbias += d;
  }
  float* part = n.part(blockIdx.y);
  part[column] = dweight;
  if (n.biased) part[n.width + column] = dbias;
}

// Second step, which may overwrite dy: a block for each row.
template <class T>
__global__ void __launch_bounds__(kLoopThreads) norm_backward_loop(BackwardRows<T> n) {
  __shared__ float2 shared[2][kLoopThreads / 32];
  TeamSum<kLoopThreads> block_sum(shared);
  const int64_t row = blockIdx.x;
  const T *dy = n.dy[row], *x = n.x[row];
  const bool centred = n.mean != nullptr;
  const float mean = centred ? n.mean[row] : 0.0f, rstd = n.rstd[row];
  const float per_width = 1.0f / static_cast<float>(n.width);
  float2 sums{0.0f, 0.0f};
  for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) {
    const float of_norm = to_float(dy[c]) * to_float(n.weight[c]);
    sums.x += centred ? of_norm : 0.0f;
    sums.y += of_norm * ((to_float(x[c]) - mean) * rstd);
  }
  sums = block_sum(sums);
  const float mean_g = sums.x * per_width, mean_g_xhat = sums.y * per_width;
  const T* residual = n.adds ? n.dresidual[row] : nullptr;
  T* dx = n.dx[row];
  for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) {
    const float xhat = (to_float(x[c]) - mean) * rstd;
    const float of_norm = to_float(dy[c]) * to_float(n.weight[c]);
    const float d = rstd * (of_norm - mean_g - xhat * mean_g_xhat);
    dx[c] = from_float<T>(n.adds ? d + to_float(residual[c]) : d);
  }
}

// Third step, where dx_sums are wanted: blocks and threads as in the first.
template <class T>
__global__ void __launch_bounds__(kLoopThreads) dx_sum_parts(BackwardRows<T> n) {
  const int64_t column = int64_t{blockIdx.x} * kLoopThreads + threadIdx.x;
  if (column >= n.width) return;
  float sum = 0;
  for (int64_t row = blockIdx.y; row < n.rows; row += gridDim.y) sum += to_float(n.dx[row][column]);
  n.dx_part(blockIdx.y)[column] = sum;
}

// The wanted sums over rows, in the order of the parts.
struct SumTargets {
  float* to[3];
};

// Second stage: targets += the parts of 32 columns. Block (strip, target).
constexpr int kStrip = 32, kSlices = 32;
__global__ void __launch_bounds__(kStrip* kSlices)
    add_norm_parts(const float* parts, int64_t count, int64_t width, SumTargets targets) {
  __shared__ float shared[kSlices][kStrip + 1];
  const int lane = threadIdx.x % kStrip, slice = threadIdx.x / kStrip;
  const int64_t column = int64_t{blockIdx.x} * kStrip + lane;
  const int64_t step = gridDim.y * width;
  float sum = 0;
  if (column < width) {
    const float* at = parts + blockIdx.y * width + column;
#pragma unroll 4
    for (int64_t p = slice; p < count; p += kSlices) sum += at[p * step];
  }
  shared[slice][lane] = sum;
  __syncthreads();
  if (slice != 0 || column >= width) return;
  float total = 0;
#pragma unroll
  for (int s = 0; s < kSlices; ++s) total += shared[s][lane];
  float* to = targets.to[blockIdx.y];
  to[column] += total;
}

size_t most_shared_bytes() {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "norm_backward");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "norm_backward");
  return static_cast<size_t>(bytes);
}

// Returns how many parts there are: 0, and nothing is done, where shared memory has no room for the
// rows of a team.
template <class T, int kTeam, int kGroups, bool kCentred, bool kSummed>
int64_t launch_teams(Exec& ex, const BackwardRows<T>& rows) {
  constexpr int kMostThreads = backward_block(kTeam, kGroups);
  constexpr int kWarpTeams = kTeam < 32 ? 32 / kTeam : 1;  // a block is made of whole warps
  constexpr size_t kWeight = kTeam * kGroups * sizeof(Group<T>);
  constexpr size_t kTeamRows = kTeam * RowRing<T, kGroups>::kThreadBytes;
  constexpr size_t kWarpSums = 2 * sizeof(float2) * kMostThreads / 32;
  const size_t room = (most_shared_bytes() - kWarpSums - kWeight) / kTeamRows;
  const int teams =
      std::min(kMostThreads / kTeam, static_cast<int>(room) / kWarpTeams * kWarpTeams);
  if (teams == 0) return 0;
  const int64_t parts =
      std::min({kMostNormParts, int64_t{gpu_of(ex).multiprocessors()}, ceil_div(rows.rows, teams)});
  launch("norm_backward", norm_backward_teams<T, kTeam, kGroups, kCentred, kSummed>, parts,
         teams * kTeam, kWeight + static_cast<size_t>(teams) * kTeamRows, stream_of(ex), rows);
  return parts;
}

template <class T, bool kCentred>
int64_t launch_wide(Exec& ex, const BackwardRows<T>& rows) {
  int64_t parts = 0;
  const auto with_sums = [&]<int kTeam, int kGroups>() {
    parts = launch_teams<T, kTeam, kGroups, kCentred, true>(ex, rows);
  };
  const auto without_sums = [&]<int kTeam, int kGroups>() {
    parts = launch_teams<T, kTeam, kGroups, kCentred, false>(ex, rows);
  };
  if (rows.summed) {
    visit_team<&TeamSizes::backward, false>(rows.width, with_sums);
  } else {
    visit_team<&TeamSizes::backward, true>(rows.width, without_sums);
  }
  return parts;
}

template <class T>
int64_t launch_loop(Exec& ex, const BackwardRows<T>& rows) {
  const int64_t parts = std::min(kMostNormParts, rows.rows);
  const dim3 blocks(static_cast<unsigned>(ceil_div(rows.width, kLoopThreads)),
                    static_cast<unsigned>(parts));
  weight_gradient_parts<T><<<blocks, kLoopThreads, 0, stream_of(ex)>>>(rows);
  check_launch("norm_backward");
  norm_backward_loop<T><<<static_cast<unsigned>(rows.rows), kLoopThreads, 0, stream_of(ex)>>>(rows);
  check_launch("norm_backward");
  if (rows.summed) {
    dx_sum_parts<T><<<blocks, kLoopThreads, 0, stream_of(ex)>>>(rows);
    check_launch("norm_backward");
  }
  return parts;
}

}  // namespace

void norm_backward(Exec& ex, const ops::NormBackward& n) {
  const int64_t rows = rows_of(n.x), width = width_of(n.x);
  if (rows == 0) return;
  ArenaScope scope(ex.scratch);
  auto* parts = data_of<float>(workspace_of(ex, n, "sums over rows"));
  int64_t count = 0;
  unsigned sums = 0;
  visit_cuda(n.x.dtype, "norm_backward", [&]<class T>() {
    const BackwardRows<T> operands{
        .dy = Rows<const T>(n.dy),
        .x = Rows<const T>(n.x),
        .dresidual = n.dresidual.present() ? Rows<const T>(n.dresidual) : Rows<const T>(),
        .dx = Rows<T>(n.dx),
        .weight = data_of<T>(n.weight),
        .mean = n.kind == NormKind::LayerNorm ? data_of<float>(n.mean) : nullptr,
        .rstd = data_of<float>(n.rstd),
        .rows = rows,
        .width = width,
        .adds = n.dresidual.present(),
        .biased = n.dbias.present(),
        .summed = n.dx_sums.present(),
        .parts = parts};
    sums = static_cast<unsigned>(operands.sums());
    if (are_wide(n.dy, n.x, n.dresidual, n.dx, n.weight)) {
      count = operands.mean != nullptr ? launch_wide<T, true>(ex, operands)
                                       : launch_wide<T, false>(ex, operands);
    }
    if (count == 0) count = launch_loop(ex, operands);
  });
  SumTargets targets{data_of<float>(n.dweight)};
  float** next = targets.to + 1;
  if (n.dbias.present()) *next++ = data_of<float>(n.dbias);
  if (n.dx_sums.present()) *next++ = data_of<float>(n.dx_sums);
  const dim3 blocks(static_cast<unsigned>(ceil_div(width, kStrip)), sums);
  add_norm_parts<<<blocks, kStrip * kSlices, 0, stream_of(ex)>>>(parts, count, width, targets);
  check_launch("norm_backward");
}

}  // namespace bev::cuda
