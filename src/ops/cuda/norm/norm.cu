// Norms forward. Where rows are aligned and no wider than kMostThreads threads hold, a team of
// threads keeps a row in registers from its sums to its result; else a block walks over the row
// once for each sum. Where rows are few, each has a block of its own with one group in a thread,
// and all that is read is asked for at once.
#include "ops/cuda/elementwise/elementwise.cuh"
#include "ops/cuda/norm/norm_teams.cuh"
#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/norm.h"
#include "ops/op_table.h"

namespace bev::cuda {

namespace {

constexpr int kLoopThreads = 256;

// Threads of a block, and blocks that a multiprocessor should have room for.
constexpr int norm_block(int team, bool few) { return few ? team : team_block(team); }
constexpr int norm_blocks(int team, bool few) { return few ? 1 : team_block(team) > 256 ? 2 : 3; }

template <class T>
struct NormRows {
  Rows<const T> x;      // or the residual
  Rows<const T> delta;  // ResidualNorm only, as are sum and draws
  Rows<T> sum, y;
  DropoutDraws draws;
  const T *weight, *bias;  // bias may be null
  float *mean, *rstd;      // RmsNorm: mean is null
  int64_t rows, width;
  float eps;
};

template <class T, int kTeam, int kGroups, bool kResidual, bool kFew>
__global__ void __launch_bounds__(norm_block(kTeam, kFew), norm_blocks(kTeam, kFew))
    norm_teams(NormRows<T> n) {
  constexpr int kThreads = norm_block(kTeam, kFew), kTeams = kThreads / kTeam;
  __shared__ float2 shared[2][kThreads / 32];
  TeamSum<kTeam, kThreads> team_sum(shared);
  trigger_dependents();
  grid_dependency_wait();
  const int member = threadIdx.x % kTeam, team = threadIdx.x / kTeam;
  const bool centred = n.mean != nullptr;
  const float per_width = 1.0f / static_cast<float>(n.width);
  for (int64_t first = int64_t{blockIdx.x} * kTeams; first < n.rows;
       first += int64_t{gridDim.x} * kTeams) {
    const int64_t row = first + team;
    const bool live = row < n.rows;
    const auto column_of = [&](int g) { return (g * kTeam + member) * kGroup; };
    const auto has = [&](int g) { return live && column_of(g) < n.width; };
    Group<T> x[kGroups], weight[kGroups], bias[kGroups];
    const auto load_parameters = [&](int g) {
      weight[g] = load_wide(n.weight + column_of(g));
      if (n.bias != nullptr) bias[g] = load_wide(n.bias + column_of(g));
    };
    {
      const T* x_row = live ? n.x[row] : nullptr;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (!has(g)) continue;
        x[g] = load_wide(x_row + column_of(g));
        if constexpr (kFew) load_parameters(g);
      }
    }
    if constexpr (kResidual) {
      const T* delta_row = live ? n.delta[row] : nullptr;
      T* sum_row = live ? n.sum[row] : nullptr;
      Group<T> delta[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (has(g)) delta[g] = load_wide(delta_row + column_of(g));
      }
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (!has(g)) continue;
        unsigned kept = ~0u;
        if (n.draws.active) kept = n.draws.kept(row, column_of(g));
        float sum[kGroup];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          sum[j] = x[g][j] + ((kept >> j & 1u) != 0 ? delta[g][j] * n.draws.scale : 0.0f);
        }
        x[g] = Group<T>::of(sum);
        store_wide(x[g], sum_row + column_of(g));
      }
    }

    float mean = 0;
    if (centred) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sum += x[g][j];
      }
      mean = team_sum({sum, 0.0f}).x * per_width;
    }
    float squares = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (!has(g)) continue;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const float d = x[g][j] - mean;
        squares += d * d;
      }
    }
    const float rstd = rsqrtf(team_sum({squares, 0.0f}).x * per_width + n.eps);
    if (live && member == 0) {
      if (centred) n.mean[row] = mean;
      n.rstd[row] = rstd;
    }

    T* y_row = live ? n.y[row] : nullptr;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (!has(g)) continue;
      if constexpr (!kFew) load_parameters(g);
      float y[kGroup];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) y[j] = (x[g][j] - mean) * rstd * weight[g][j] + bias[g][j];
      store_wide(Group<T>::of(y), y_row + column_of(g));
    }
  }
}

template <class T, bool kResidual>
__global__ void __launch_bounds__(kLoopThreads) norm_loop(NormRows<T> n) {
  __shared__ float2 shared[2][kLoopThreads / 32];
  TeamSum<kLoopThreads> block_sum(shared);
  trigger_dependents();
  grid_dependency_wait();
  const int64_t row = blockIdx.x;
  const T* x = n.x[row];
  if constexpr (kResidual) {
    const T* delta = n.delta[row];
    T* sum = n.sum[row];
    for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) {
      const bool keeps = !n.draws.active || n.draws.keeps(row, c);
      const float d = keeps ? to_float(delta[c]) * n.draws.scale : 0.0f;
      sum[c] = from_float<T>(to_float(x[c]) + d);
    }
    x = sum;  // a thread reads what it has written itself
  }
  const bool centred = n.mean != nullptr;
  const float per_width = 1.0f / static_cast<float>(n.width);
  float mean = 0;
  if (centred) {
    float sum = 0;
    for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) sum += to_float(x[c]);
    mean = block_sum({sum, 0.0f}).x * per_width;
  }
  float squares = 0;
  for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) {
    const float d = to_float(x[c]) - mean;
    squares += d * d;
  }
  const float rstd = rsqrtf(block_sum({squares, 0.0f}).x * per_width + n.eps);
  if (threadIdx.x == 0) {
    if (centred) n.mean[row] = mean;
    n.rstd[row] = rstd;
  }
  T* y = n.y[row];
  for (int64_t c = threadIdx.x; c < n.width; c += kLoopThreads) {
    const float scaled = (to_float(x[c]) - mean) * rstd * to_float(n.weight[c]);
    y[c] = from_float<T>(n.bias != nullptr ? scaled + to_float(n.bias[c]) : scaled);
  }
}

// What the two forwards share. x: what is normalised.
template <class T, class Args>
NormRows<T> rows_of_norm(const Args& n, const ConstTensor& x, const ops::Dropout& dropout) {
  return {.x = Rows<const T>(x),
          .delta = {},
          .sum = {},
          .y = Rows<T>(n.y),
          .draws = DropoutDraws(dropout),
          .weight = data_of<T>(n.weight),
          .bias = n.bias.present() ? data_of<T>(n.bias) : nullptr,
          .mean = n.kind == NormKind::LayerNorm ? data_of<float>(n.mean) : nullptr,
          .rstd = data_of<float>(n.rstd),
          .rows = rows_of(x),
          .width = width_of(x),
          .eps = static_cast<float>(n.eps)};
}

template <bool kResidual, class T>
void launch(Exec& ex, const NormRows<T>& rows, bool wide, const char* op) {
  if (rows.rows == 0) return;
  const auto give_each_a_block = [&]<int kThreads>() {
    launch_programmatic(op, norm_teams<T, kThreads, 1, kResidual, true>,
                        dim3(static_cast<unsigned>(rows.rows)), kThreads, 0, stream_of(ex), rows);
  };
  if (wide && rows.rows <= kFewRows && rows.width % kGroup == 0) {
    const int64_t groups = rows.width / kGroup;
    if (groups <= 128) return give_each_a_block.template operator()<128>();
    if (groups <= 256) return give_each_a_block.template operator()<256>();
    if (groups <= 512) return give_each_a_block.template operator()<512>();
  }
  const bool fits =
      wide &&
      visit_team<&TeamSizes::forward, !kResidual>(rows.width, [&]<int kTeam, int kGroups>() {
        constexpr int kThreads = team_block(kTeam);
        const int64_t blocks = ceil_div(rows.rows, kThreads / kTeam);
        launch_for_rows(op, rows.rows, norm_teams<T, kTeam, kGroups, kResidual, false>,
                        blocks_for(ex, blocks * kThreads, kThreads), kThreads, stream_of(ex), rows);
      });
  if (!fits) {
    launch_for_rows(op, rows.rows, norm_loop<T, kResidual>, static_cast<unsigned>(rows.rows),
                    kLoopThreads, stream_of(ex), rows);
  }
}

}  // namespace

void norm(Exec& ex, const ops::Norm& n) {
  visit_cuda(n.x.dtype, "norm", [&]<class T>() {
    launch<false>(ex, rows_of_norm<T>(n, n.x, {}), are_wide(n.x, n.y, n.weight, n.bias), "norm");
  });
}

void residual_norm(Exec& ex, const ops::ResidualNorm& n) {
  visit_cuda(n.residual.dtype, "residual_norm", [&]<class T>() {
    NormRows<T> rows = rows_of_norm<T>(n, n.residual, n.dropout);
    rows.delta = Rows<const T>(n.delta);
    rows.sum = Rows<T>(n.sum);
    launch<true>(ex, rows, are_wide(n.residual, n.delta, n.sum, n.y, n.weight, n.bias),
                 "residual_norm");
  });
}

}  // namespace bev::cuda
