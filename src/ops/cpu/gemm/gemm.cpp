#include "ops/cpu/gemm/gemm.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/check.h"
#include "base/integer.h"
#include "device/thread_pool.h"
#include "ops/cpu/gemm/gemm_kernel.h"

namespace bev::cpu {

namespace {

// The operand with fewer lanes (rows of a, columns of b) is packed once for all threads: shared.
// The other is packed in blocks by the thread that multiplies them: own. With a bf16 c, sums over
// parts of k lie beside them in f32.
constexpr size_t kWorkspaceBytes = size_t{4} << 20;  // per thread, of which
constexpr size_t kOwnBytes = size_t{256} << 10;
constexpr size_t kPartialBytes = size_t{1} << 20;

// Lanes packed and multiplied as one task; a multiple of every tile. Few, so that a thread that is
// disturbed does not delay the others, and so that source and panels of a task fit the cache
// together.
constexpr int64_t kTaskLanes = 48;
constexpr int64_t kMinSharedLanes = 11 * kTaskLanes;  // rather than more of k
// Below this many multiplications, waking the other threads costs more than they save.
constexpr double kSerialWork = 500e3;

bool is_element(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

void check(const Gemm& g) {
  BEV_CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0, Internal, "gemm of {} x {} x {}", g.m, g.n, g.k);
  BEV_CHECK(is_element(g.a.dtype) && is_element(g.b.dtype) && is_element(g.c_dtype) &&
                (g.bias == nullptr || is_element(g.bias_dtype)),
            Internal, "gemm of {} and {} into {}", name_of(g.a.dtype), name_of(g.b.dtype),
            name_of(g.c_dtype));
  for (const GemmOperand& x : {g.a, g.b}) {
    BEV_CHECK(x.row_stride == 1 || x.col_stride == 1, Internal, "gemm operand with strides {}, {}",
              x.row_stride, x.col_stride);
  }
  BEV_CHECK(!(g.activate && g.activation_input != nullptr), Internal,
            "gemm with an activation and the backward of one");
  BEV_CHECK(!(g.activate || g.activation_input != nullptr) || !is_gated(g.activation), Internal,
            "gemm with the gated activation {}", name_of_choice(g.activation));
}

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Part `index` of `whole` cut into pieces of `step`.
Range cut(Range whole, int64_t step, int64_t index) {
  const int64_t begin = whole.begin + index * step;
  return {begin, std::min(begin + step, whole.end)};
}

// The rows of a or the columns of b.
struct Side {
  GemmOperand operand;
  int64_t lanes, lane_stride, depth_stride;
  int64_t tile;
  void (*pack)(const GemmPanels&, float*);

  GemmPanels panels(Range lane, Range depth) const {
    const int64_t offset = lane.begin * lane_stride + depth.begin * depth_stride;
    const auto bytes = static_cast<int64_t>(size_of(operand.dtype));
    return {static_cast<const std::byte*>(operand.data) + offset * bytes,
            operand.dtype,
            lane_stride,
            depth_stride,
            lane.size(),
            depth.size()};
  }
};

GemmPrefetch prefetch_of(const GemmPanels& panels) {
  const auto bytes = static_cast<int64_t>(size_of(panels.dtype));
  const auto* data = static_cast<const char*>(panels.data);
  if (panels.lane_stride == 1) {
    return {data, panels.depth, panels.lanes * bytes, panels.depth_stride * bytes};
  }
  return {data, panels.lanes, panels.depth * bytes, panels.lane_stride * bytes};
}

// One GEMM, computed by one or all threads of a pool.
class GemmRun {
 public:
  GemmRun(const Gemm& g, const GemmKernels& kernels, int threads, std::byte* workspace);

  // Called once on every thread. One that comes late finds less to do, or nothing.
  void work(int thread);

 private:
  // What is computed from one filling of the shared panels.
  struct Section {
    Range own, shared, depth;
  };
  // Tickets are numbered through all sections. A thread that draws one of a later section keeps it
  // until it gets there, so that nobody waits for a thread that has not drawn.
  struct Tickets {
    std::atomic<int64_t> next{0}, done{0};
    int64_t draw() { return next.fetch_add(1, std::memory_order_relaxed); }
    void finish() { done.fetch_add(1, std::memory_order_release); }
    void wait_until(int64_t count) const;
  };
  struct Task {
    Range own, shared;
  };

  void plan_sections(int threads, std::byte* workspace);
  int64_t packs_of(const Section& section) const;
  void pack_shared(const Section& section, int64_t first, int64_t& ticket);
  void multiply(const Section& section, int64_t first, int64_t& ticket, float* packed);
  void multiply_block(const Section& section, const Task& task, Range depth, const float* own,
                      const GemmPrefetch& next) const;
  int64_t tasks_of(const Section& section) const;
  Task task_of(const Section& section, int64_t index) const;
  float* shared_panels(const Section& section, int64_t lane, Range depth) const;
  bool sums_rows(const Range& other_lanes) const {
    return g_.row_sums != nullptr && other_lanes.begin == 0;
  }

  const Gemm& g_;
  const GemmKernels& kernels_;
  const bool shares_a_;
  Side shared_, own_;
  int64_t depth_;  // of a block; depends on k alone, because it decides how sums are rounded
  int64_t own_section_, shared_section_, depth_section_;  // at most, of a section
  int64_t shared_lanes_;                                  // at most, of a task
  std::byte* own_workspace_;
  float* shared_workspace_;
  float* partial_ = nullptr;  // [m, n] of a section
  Tickets packs_, tasks_;
};

GemmRun::GemmRun(const Gemm& g, const GemmKernels& kernels, int threads, std::byte* workspace)
    : g_(g), kernels_(kernels), shares_a_(g.m <= g.n) {
  const Side rows{g.a, g.m, g.a.row_stride, g.a.col_stride, kernels.tile_rows, kernels.pack_a};
  const Side columns{g.b,           g.n, g.b.col_stride, g.b.row_stride, kernels.tile_columns,
                     kernels.pack_b};
  shared_ = shares_a_ ? rows : columns;
  own_ = shares_a_ ? columns : rows;
  const int64_t blocks = std::max<int64_t>(1, div_ceil(g.k, kernels.depth));
  depth_ = std::max<int64_t>(1, round_up(div_ceil(g.k, blocks), 4));
  plan_sections(threads, workspace);
}

void GemmRun::plan_sections(int threads, std::byte* workspace) {
  const auto count = static_cast<size_t>(threads);
  own_section_ = std::max<int64_t>(1, own_.lanes);
  int64_t shared = round_up(std::max<int64_t>(1, shared_.lanes), kTaskLanes);

  own_workspace_ = workspace;
  std::byte* rest = workspace + count * kOwnBytes;
  size_t bytes = count * (kWorkspaceBytes - kOwnBytes);
  if (g_.c_dtype != DType::f32 && g_.k > depth_) {
    partial_ = reinterpret_cast<float*>(rest);
    rest += count * kPartialBytes;
    bytes -= count * kPartialBytes;
    shared = std::min(shared, kMinSharedLanes);
    const auto floats = static_cast<int64_t>(count * kPartialBytes / sizeof(float));
    own_section_ = floats / shared / kTaskLanes * kTaskLanes;
  }
  shared_workspace_ = reinterpret_cast<float*>(rest);

  // All of k at once when enough lanes fit, or else as much of k as fits beside those.
  const auto floats = static_cast<int64_t>(bytes / sizeof(float));
  const int64_t whole_depth = std::max<int64_t>(1, round_up(g_.k, depth_));
  const int64_t lanes = floats / whole_depth / kTaskLanes * kTaskLanes;
  shared_section_ = std::min(shared, std::max(lanes, kMinSharedLanes));
  const int64_t sections = div_ceil(shared, shared_section_);
  shared_section_ = round_up(div_ceil(shared, sections), kTaskLanes);
  depth_section_ = std::min(whole_depth, floats / shared_section_ / depth_ * depth_);

  // With many threads the blocks of one side are too few.
  const int64_t own_tasks = div_ceil(std::min(own_section_, own_.lanes), kTaskLanes);
  const int64_t wanted = 2 * threads;
  const int64_t parts = own_tasks > 0 ? div_ceil(wanted, own_tasks) : 1;
  shared_lanes_ = round_up(div_ceil(std::min(shared_section_, shared_.lanes), parts), kTaskLanes);
  shared_lanes_ = std::max(shared_lanes_, kTaskLanes);
}

void GemmRun::Tickets::wait_until(int64_t count) const {
  constexpr int kSpins = 2000;
  for (int spin = 0; done.load(std::memory_order_acquire) < count; ++spin) {
    if (spin < kSpins) {
      __builtin_ia32_pause();
    } else {
      std::this_thread::yield();  // the thread we wait for may want this core
    }
  }
}

void GemmRun::work(int thread) {
  auto* packed = reinterpret_cast<float*>(own_workspace_ + static_cast<size_t>(thread) * kOwnBytes);
  int64_t pack = packs_.draw(), task = tasks_.draw();
  int64_t first_pack = 0, first_task = 0;
  for (int64_t i = 0; i < own_.lanes; i += own_section_) {
    // At least one round each: without lanes to share or depth there are still sums and zeros.
    for (int64_t j = 0; j == 0 || j < shared_.lanes; j += shared_section_) {
      for (int64_t d = 0; d == 0 || d < g_.k; d += depth_section_) {
        const Section section{{i, std::min(i + own_section_, own_.lanes)},
                              {j, std::min(j + shared_section_, shared_.lanes)},
                              {d, std::min(d + depth_section_, g_.k)}};
        tasks_.wait_until(first_task);  // the panels of the section before are no longer read
        pack_shared(section, first_pack, pack);
        first_pack += packs_of(section);
        packs_.wait_until(first_pack);
        multiply(section, first_task, task, packed);
        first_task += tasks_of(section);
      }
    }
  }
}

// Blocks of depth one after the other, each with all lanes of the section.
float* GemmRun::shared_panels(const Section& section, int64_t lane, Range depth) const {
  const int64_t lanes = round_up(section.shared.size(), shared_.tile);
  return shared_workspace_ + (depth.begin - section.depth.begin) * lanes +
         (lane - section.shared.begin) * depth.size();
}

int64_t GemmRun::packs_of(const Section& section) const {
  return div_ceil(section.shared.size(), kTaskLanes);
}

void GemmRun::pack_shared(const Section& section, int64_t first, int64_t& ticket) {
  const int64_t blocks = div_ceil(section.depth.size(), depth_);
  for (; ticket < first + packs_of(section); ticket = packs_.draw()) {
    const Range lanes = cut(section.shared, kTaskLanes, ticket - first);
    for (int64_t block = 0; block < blocks; ++block) {
      const Range depth = cut(section.depth, depth_, block);
      float* packed = shared_panels(section, lanes.begin, depth);
      shared_.pack(shared_.panels(lanes, depth), packed);
      if (shares_a_ && sums_rows(section.own)) {
        kernels_.add_row_sums(packed, lanes.size(), depth.size(), g_.row_sums + lanes.begin);
      }
    }
    packs_.finish();
  }
}

int64_t GemmRun::tasks_of(const Section& section) const {
  return div_ceil(section.own.size(), kTaskLanes) *
         std::max<int64_t>(1, div_ceil(section.shared.size(), shared_lanes_));
}

GemmRun::Task GemmRun::task_of(const Section& section, int64_t index) const {
  const int64_t blocks = div_ceil(section.own.size(), kTaskLanes);
  return {cut(section.own, kTaskLanes, index % blocks),
          cut(section.shared, shared_lanes_, index / blocks)};
}

void GemmRun::multiply(const Section& section, int64_t first, int64_t& ticket, float* packed) {
  const int64_t tasks = tasks_of(section);
  const int64_t blocks = std::max<int64_t>(1, div_ceil(section.depth.size(), depth_));
  while (ticket < first + tasks) {
    const Task task = task_of(section, ticket - first);
    for (int64_t block = 0; block < blocks; ++block) {
      const Range depth = cut(section.depth, depth_, block);
      own_.pack(own_.panels(task.own, depth), packed);
      if (!shares_a_ && sums_rows(task.shared)) {
        kernels_.add_row_sums(packed, task.own.size(), depth.size(), g_.row_sums + task.own.begin);
      }
      GemmPrefetch next;
      if (block + 1 < blocks) {
        next = prefetch_of(own_.panels(task.own, cut(section.depth, depth_, block + 1)));
      } else {
        ticket = tasks_.draw();
        if (ticket < first + tasks) {
          next = prefetch_of(
              own_.panels(task_of(section, ticket - first).own, cut(section.depth, depth_, 0)));
        }
      }
      multiply_block(section, task, depth, packed, next);
    }
    tasks_.finish();
  }
}

void GemmRun::multiply_block(const Section& section, const Task& task, Range depth,
                             const float* own, const GemmPrefetch& next) const {
  const float* shared = shared_panels(section, task.shared.begin, depth);
  const Range rows = shares_a_ ? task.shared : task.own;
  const Range columns = shares_a_ ? task.own : task.shared;
  const Range section_rows = shares_a_ ? section.shared : section.own;
  const Range section_columns = shares_a_ ? section.own : section.shared;
  GemmBlock block{.a = shares_a_ ? shared : own,
                  .b = shares_a_ ? own : shared,
                  .row = rows.begin,
                  .column = columns.begin,
                  .rows = rows.size(),
                  .columns = columns.size(),
                  .depth = depth.size(),
                  .last = depth.end == g_.k,
                  .next = next};
  if (g_.c_dtype == DType::f32) {
    block.partial = static_cast<float*>(g_.c) + rows.begin * g_.c_stride + columns.begin;
    block.partial_stride = g_.c_stride;
    block.add = g_.accumulate || depth.begin > 0;
  } else if (partial_ != nullptr) {
    block.partial_stride = section_columns.size();
    block.partial = partial_ + (rows.begin - section_rows.begin) * block.partial_stride +
                    (columns.begin - section_columns.begin);
    block.add = depth.begin > 0;
  }
  kernels_.multiply(g_, block);
}

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
  switch (isa) {
    case Isa::Avx2: return kGemmAvx2;
    case Isa::Avx512: return kGemmAvx512;
    default: return kGemmPortable;
  }
}

size_t gemm_workspace_bytes() { return kWorkspaceBytes; }

void gemm_on_thread(std::byte* workspace, const Gemm& g, Isa isa) {
  check(g);
  if (g.m == 0) return;
  GemmRun gemm_run(g, gemm_kernels(isa), 1, workspace);
  gemm_run.work(0);
}

void gemm(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa) {
  const double work =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (pool.threads() == 1 || work < kSerialWork) return gemm_on_thread(workspace, g, isa);
  check(g);
  GemmRun gemm_run(g, gemm_kernels(isa), pool.threads(), workspace);
  pool.share([&](int thread) { gemm_run.work(thread); });
}

namespace {

// Weights below which waking the other threads costs more than they save.
constexpr int64_t kSerialWeights = 32768;

}  // namespace

bool is_few_rows(const Gemm& g) {
  const auto packed = static_cast<size_t>(g.m * round_up(g.k, 16)) * sizeof(float);
  return g.m <= kFewRows && g.a.col_stride == 1 && g.b.row_stride == 1 && g.row_sums == nullptr &&
         packed <= gemm_workspace_bytes();
}

void few_rows(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa) {
  BEV_CHECK(is_few_rows(g), Internal, "{} rows of a are not few", g.m);
  if (g.m == 0) return;
  const GemmKernels& kernels = gemm_kernels(isa);
  auto* packed = reinterpret_cast<float*>(workspace);
  kernels.pack_few(g, packed);
  std::atomic<int64_t> drawn{0};
  const int64_t tasks = div_ceil(g.n, kFewColumns);
  const auto work = [&](int) {
    int64_t task = drawn.fetch_add(1);
    while (task < tasks) {
      // Drawn early, so that it is known what to read next.
      const int64_t following = drawn.fetch_add(1), begin = task * kFewColumns;
      kernels.multiply_few(g, packed, begin, std::min(kFewColumns, g.n - begin),
                           std::min(g.n, following * kFewColumns));
      task = following;
    }
  };
  if (g.n * g.k < kSerialWeights) {
    work(0);
  } else {
    pool.share(work);
  }
}

}  // namespace bev::cpu
