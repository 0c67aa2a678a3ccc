// The backward of norms. With xhat = (x - mean) * rstd and g = dy * weight (RmsNorm: mean = 0 and
// no mean(g) term):
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) [+ dresidual]
//   dweight += sum over rows of dy * xhat,  dbias += sum over rows of dy,  dx_sums += that of dx
// The sums over rows are made in two stages: every block keeps its own, then they are added up.
#include "ops/cuda/norm_teams.cuh"
#include "ops/cuda/ops.h"
#include "ops/cuda/workspace.h"
#include "ops/norm.h"

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

// Calls f.template operator()<threads, groups of each>() for the smallest team that holds a row;
// false, and no call, where none does or the row is not made of whole groups.
template <class F>
bool visit_backward_team(int64_t width, F&& f) {
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
    f.template operator()<64, 2>();
  } else if (groups <= 192) {
    f.template operator()<96, 2>();
  } else if (groups <= 256) {
    f.template operator()<128, 2>();
  } else if (groups <= 320) {
    f.template operator()<160, 2>();
  } else if (groups <= 512) {
    f.template operator()<256, 2>();
  } else if (groups <= 1024) {
    f.template operator()<512, 2>();
  } else {
    return false;
  }
  return true;
}

// Threads of a block, which has a multiprocessor for itself: as many whole teams as find registers
// for their sums over rows and for two rows.
constexpr int backward_block(int team, int groups) {
  const int most = groups == 1 ? 768 : groups == 2 ? 512 : 384;
  return most / team * team;
}

// Adds up what the teams of a block have, in order, and writes it as the block's part.
template <int kTeam, int kGroups>
__device__ __forceinline__ void write_part(const float (&sums)[kGroups][kGroup], int64_t width,
                                           float* part) {
  constexpr int kThreads = backward_block(kTeam, kGroups), kTeams = kThreads / kTeam;
  const int member = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
  if constexpr (kTeams == 1) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int column = (g * kTeam + member) * kGroup;
      if (column >= width) continue;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) part[column + j] = sums[g][j];
    }
  } else {
    constexpr int kColumns = kTeam * kGroups * kGroup;
    __shared__ float shared[kTeams][kColumns];
    __syncthreads();  // the array is used again for the bias
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        shared[team][(g * kTeam + member) * kGroup + j] = sums[g][j];
      }
    }
    __syncthreads();
    for (int column = threadIdx.x; column < width; column += kThreads) {
      float sum = 0;
#pragma unroll
      for (int t = 0; t < kTeams; ++t) sum += shared[t][column];
      part[column] = sum;
    }
  }
}

// What a thread has of a row; zeros of a row or column that is not there.
template <class T, int kGroups>
struct RowGroups {
  Group<T> dy[kGroups], x[kGroups], residual[kGroups];
  float mean = 0, rstd = 0;
};

// Reads dy, x and dresidual once and writes dx once: a row stays in the registers of its team, and
// every thread keeps the sums over rows of its own columns. While a row is computed the next one is
// on its way; f32 has no registers for that.
// With c = x - mean and h = rstd * g:  dx = h - mean(h) - c * rstd^2 * mean(h * c).
template <class T, int kTeam, int kGroups, bool kCentred>
__global__ void __launch_bounds__(backward_block(kTeam, kGroups), 1)
    norm_backward_teams(BackwardRows<T> n) {
  constexpr int kThreads = backward_block(kTeam, kGroups), kTeams = kThreads / kTeam;
  constexpr bool kAhead = sizeof(T) == 2;
  __shared__ float2 shared[2][kThreads / 32];
  TeamSum<kTeam, kThreads> team_sum(shared);
  const int member = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
  const float per_width = 1.0f / static_cast<float>(n.width);
  const auto column_of = [&](int g) { return (g * kTeam + member) * kGroup; };
  // Columns that are not there keep the zeros that r had at first.
  const auto read = [&](int64_t row, RowGroups<T, kGroups>& r) {
    if (row >= n.rows) {
      r = {};
      return;
    }
    const T *dy = n.dy[row], *x = n.x[row];
    const T* residual = n.adds ? n.dresidual[row] : nullptr;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (column_of(g) >= n.width) continue;
      r.dy[g] = load_wide(dy + column_of(g));
      r.x[g] = load_wide(x + column_of(g));
      if (n.adds) r.residual[g] = load_wide(residual + column_of(g));
    }
    r.rstd = n.rstd[row];
    if constexpr (kCentred) r.mean = n.mean[row];
  };
  float dweight[kGroups][kGroup] = {}, dbias[kGroups][kGroup] = {};
  Group<T> weight[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (column_of(g) < n.width) weight[g] = load_wide(n.weight + column_of(g));
  }
  const int64_t step = int64_t{gridDim.x} * kTeams;
  RowGroups<T, kGroups> next;
  if constexpr (kAhead) read(int64_t{blockIdx.x} * kTeams + team, next);
  for (int64_t first = int64_t{blockIdx.x} * kTeams; first < n.rows; first += step) {
    const int64_t row = first + team;
    RowGroups<T, kGroups> r;
    if constexpr (kAhead) {
      r = next;
      read(row + step, next);
    } else {
      read(row, r);
    }
    float2 sums{0.0f, 0.0f};
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float c = r.x[g][j] - r.mean;
        const float scaled = r.dy[g][j] * r.rstd;
        const float h = scaled * weight[g][j];
        if constexpr (kCentred) sums.x += h;
        sums.y += h * c;
        dweight[g][j] += scaled * c;
        if constexpr (kCentred) dbias[g][j] += r.dy[g][j];
      }
    }
    sums = team_sum(sums);
    if (row >= n.rows) continue;
    const float mean_h = sums.x * per_width;
    const float slope = r.rstd * r.rstd * (sums.y * per_width);
    T* dx_row = n.dx[row];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (column_of(g) >= n.width) continue;
      float dx[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float c = r.x[g][j] - r.mean;
        const float h = r.dy[g][j] * r.rstd * weight[g][j];
        dx[j] = h - mean_h - c * slope + r.residual[g][j];
      }
      store_wide(Group<T>::of(dx), dx_row + column_of(g));
    }
  }
  float* part = n.part(blockIdx.x);
  write_part<kTeam, kGroups>(dweight, n.width, part);
  if constexpr (kCentred) {
    if (n.biased) write_part<kTeam, kGroups>(dbias, n.width, part + n.width);
  }
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

// Returns how many parts there are.
template <class T>
int64_t launch(Exec& ex, const BackwardRows<T>& rows, bool wide) {
  int64_t parts = 0;
  const bool fits = wide && visit_backward_team(rows.width, [&]<int kTeam, int kGroups>() {
                      constexpr int kThreads = backward_block(kTeam, kGroups);
                      parts = std::min({kMostNormParts, int64_t{gpu_of(ex).multiprocessors()},
                                        ceil_div(rows.rows, kThreads / kTeam)});
                      const auto blocks = static_cast<unsigned>(parts);
                      if (rows.mean != nullptr) {
                        norm_backward_teams<T, kTeam, kGroups, true>
                            <<<blocks, kThreads, 0, stream_of(ex)>>>(rows);
                      } else {
                        norm_backward_teams<T, kTeam, kGroups, false>
                            <<<blocks, kThreads, 0, stream_of(ex)>>>(rows);
                      }
                    });
  if (!fits) {
    parts = std::min(kMostNormParts, rows.rows);
    const dim3 blocks(static_cast<unsigned>(ceil_div(rows.width, kLoopThreads)),
                      static_cast<unsigned>(parts));
    weight_gradient_parts<T><<<blocks, kLoopThreads, 0, stream_of(ex)>>>(rows);
    check_launch("norm_backward");
    norm_backward_loop<T>
        <<<static_cast<unsigned>(rows.rows), kLoopThreads, 0, stream_of(ex)>>>(rows);
  }
  check_launch("norm_backward");
  if (rows.summed) {
    const dim3 blocks(static_cast<unsigned>(ceil_div(rows.width, kLoopThreads)),
                      static_cast<unsigned>(parts));
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
    count = launch(ex, operands, are_wide(n.dy, n.x, n.dresidual, n.dx, n.weight));
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
