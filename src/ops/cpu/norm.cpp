#include "ops/norm.h"

#include "base/integer.h"
#include "ops/cpu/dropout_args.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// Rows whose operands stay in a core's own cache from the sums over rows to the row by row part.
constexpr int64_t kBlockRows = 64;

// The same for several threads, in the cache they share. A barrier follows every block, and costs
// milliseconds where threads outnumber free cores.
constexpr int64_t kSharedBlockBytes = int64_t{4} << 20;

// Columns are dealt to threads by the cache line of dweight.
constexpr int64_t kNormColumns = 16;

// What Norm and ResidualNorm share, for row r of x.
template <class T, class Args>
NormRow<T> norm_row(const Args& n, const T* x, T* y, int64_t width, int64_t r) {
  return {
      .x = x,
      .weight = reinterpret_cast<const T*>(n.weight.data),
      .bias = n.bias.present() ? reinterpret_cast<const T*>(n.bias.data) : nullptr,
      .y = y,
      .width = width,
      .eps = n.eps,
      .mean = n.kind == NormKind::LayerNorm ? reinterpret_cast<float*>(n.mean.data) + r : nullptr,
      .rstd = reinterpret_cast<float*>(n.rstd.data) + r};
}

template <class T>
class Backward {
 public:
  explicit Backward(const ops::NormBackward& n)
      : n_(n),
        dy_(n.dy),
        x_(n.x),
        dresidual_(n.dresidual),
        dx_(n.dx),
        width_(width_of(n.x)),
        mean_(n.kind == NormKind::LayerNorm ? reinterpret_cast<const float*>(n.mean.data)
                                            : nullptr),
        rstd_(reinterpret_cast<const float*>(n.rstd.data)) {}

  // The sums over rows [begin, end) for columns [column_begin, column_end). Groups of kNormRows are
  // counted from row 0, whatever the threads. REQUIRES: begin is a multiple of kNormRows.
  void add_weight_gradients(int64_t begin, int64_t end, int64_t column_begin,
                            int64_t column_end) const {
    if (column_begin >= column_end) return;
    for (int64_t first = begin; first < end; first += kNormRows) {
      NormWeightRows<T> group{};
      group.rows = static_cast<int>(std::min<int64_t>(kNormRows, end - first));
      group.dweight = reinterpret_cast<float*>(n_.dweight.data);
      if (n_.dbias.present()) group.dbias = reinterpret_cast<float*>(n_.dbias.data);
      for (int i = 0; i < group.rows; ++i) {
        const int64_t r = first + i;
        group.dy[i] = dy_[r];
        group.x[i] = x_[r];
        group.mean[i] = mean_of(r);
        group.rstd[i] = rstd_[r];
      }
      kernels_of<T>().norm_weight_rows(group, column_begin, column_end);
    }
  }

  void write_dx(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      kernels_of<T>().norm_backward_row(
          {.dy = dy_[r],
           .x = x_[r],
           .weight = reinterpret_cast<const T*>(n_.weight.data),
           .dresidual = n_.dresidual.present() ? dresidual_[r] : nullptr,
           .dx = dx_[r],
           .width = width_,
           .centred = mean_ != nullptr,
           .mean = mean_of(r),
           .rstd = rstd_[r]});
    }
  }

  // The sums of dx, which is there for these rows, over the rows of add_weight_gradients.
  void add_dx_sums(int64_t begin, int64_t end, int64_t column_begin, int64_t column_end) const {
    if (column_begin >= column_end) return;
    for (int64_t first = begin; first < end; first += kNormRows) {
      NormSummedRows<T> group{};
      group.rows = static_cast<int>(std::min<int64_t>(kNormRows, end - first));
      group.sums = reinterpret_cast<float*>(n_.dx_sums.data);
      for (int i = 0; i < group.rows; ++i) group.dx[i] = dx_[first + i];
      kernels_of<T>().norm_summed_rows(group, column_begin, column_end);
    }
  }

  bool sums_dx() const { return n_.dx_sums.present(); }
  int64_t rows() const { return x_.count(); }
  int64_t width() const { return width_; }

 private:
  float mean_of(int64_t r) const { return mean_ != nullptr ? mean_[r] : 0.0f; }

  const ops::NormBackward& n_;
  RowsOf<const T> dy_, x_, dresidual_;
  RowsOf<T> dx_;
  int64_t width_;
  const float *mean_, *rstd_;
};

// The sums over rows are cut by columns, dx by rows. dx may be dy, so the parameter gradients of a
// block of rows are complete before its dx is written. dx is summed where a barrier that is there
// anyway lies between it and the threads that wrote it.
template <class T>
void backward(ThreadPool& pool, const Backward<T>& work) {
  const int64_t rows = work.rows(), width = work.width();
  if (pool.threads() == 1 || rows * width < 2 * kGrain) {
    for (int64_t begin = 0; begin < rows; begin += kBlockRows) {
      const int64_t end = std::min(rows, begin + kBlockRows);
      work.add_weight_gradients(begin, end, 0, width);
      work.write_dx(begin, end);
      if (work.sums_dx()) work.add_dx_sums(begin, end, 0, width);
    }
    return;
  }
  const int64_t threads = pool.threads();
  const int64_t units = (width + kNormColumns - 1) / kNormColumns;
  const int64_t fitting = kSharedBlockBytes / (2 * width * static_cast<int64_t>(sizeof(T)));
  const int64_t block = round_up(std::max(fitting, 16 * threads), kNormRows);
  if (rows <= block) {
    pool.split(units, 1, [&](int64_t begin, int64_t end) {
      work.add_weight_gradients(0, rows, begin * kNormColumns, std::min(width, end * kNormColumns));
    });
    pool.split(rows, 1, [&](int64_t begin, int64_t end) { work.write_dx(begin, end); });
    if (!work.sums_dx()) return;
    pool.split(units, 1, [&](int64_t begin, int64_t end) {
      work.add_dx_sums(0, rows, begin * kNormColumns, std::min(width, end * kNormColumns));
    });
    return;
  }
  pool.run([&](int thread) {
    const int64_t column_begin = units * thread / threads * kNormColumns;
    const int64_t column_end = std::min(width, units * (thread + 1) / threads * kNormColumns);
    int64_t summed = 0;  // rows
    const auto sum_dx_until = [&](int64_t end) {
      if (work.sums_dx()) work.add_dx_sums(summed, end, column_begin, column_end);
      summed = end;
    };
    for (int64_t begin = 0; begin < rows; begin += block) {
      const int64_t count = std::min(block, rows - begin);
      work.add_weight_gradients(begin, begin + count, column_begin, column_end);
      pool.barrier();
      sum_dx_until(begin);
      work.write_dx(begin + count * thread / threads, begin + count * (thread + 1) / threads);
    }
    if (!work.sums_dx()) return;
    pool.barrier();
    sum_dx_until(rows);
  });
}

}  // namespace

void norm(Exec& ex, const ops::Norm& n) {
  visit_cpu(n.x.dtype, "norm", [&]<class T>() {
    const RowsOf<const T> x(n.x);
    const RowsOf<T> y(n.y);
    const int64_t width = width_of(n.x);
    threads_of(ex).split(x.count(), grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        kernels_of<T>().norm_row(norm_row<T>(n, x[r], y[r], width, r));
      }
    });
  });
}

void residual_norm(Exec& ex, const ops::ResidualNorm& n) {
  visit_cpu(n.residual.dtype, "residual_norm", [&]<class T>() {
    const RowsOf<const T> residual(n.residual), delta(n.delta);
    const RowsOf<T> sum(n.sum), y(n.y);
    const int64_t width = width_of(n.sum);
    threads_of(ex).split(sum.count(), grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        add_dropped(residual[r], delta[r], sum[r], width, n.dropout, r, 0);
        kernels_of<T>().norm_row(norm_row<T>(n, sum[r], y[r], width, r));
      }
    });
  });
}

void norm_backward(Exec& ex, const ops::NormBackward& n) {
  visit_cpu(n.x.dtype, "norm_backward",
            [&]<class T>() { backward(threads_of(ex), Backward<T>(n)); });
}

}  // namespace bev::cpu
