// Every test names the fault that makes it fail.
#include "ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/harness.h"

namespace bev::test {
namespace {

using ops::kSoftmaxStats;
using ops::kStatMax;
using ops::kStatSum;
using ops::kStatSumExp;
using ops::kStatTarget;

constexpr Draw kLogits{.scale = 3};

struct LossCase {
  int64_t rows, classes;
  int64_t column_begin = 0, columns = 0;  // of the shard; 0: all
  double smoothing = 0, z_loss = 0;

  int64_t width() const { return columns > 0 ? columns : classes; }
  std::string name() const {
    return label("rows={} classes={} columns={} from {} smoothing={} z_loss={}", rows, classes,
                 width(), column_begin, smoothing, z_loss);
  }
  // One in seven is ignored, one of them with another negative number.
  ConstTensor targets(Trial& run) const {
    std::vector<int64_t> targets = random_integers(21, rows, 0, classes);
    for (size_t i = 3; i < targets.size(); i += 7) targets[i] = i == 10 ? -100 : -1;
    return run.integers({rows}, DType::i32, targets);
  }
};

struct Stats : LossCase {
  void operator()(Trial& run) const {
    const Tensor stats = run.blank({rows, kSoftmaxStats}, Element::Sum);
    const auto spread = kLogits.scale * std::sqrt(static_cast<double>(width()));
    run.compare("max", slice(stats, 1, kStatMax, 1));
    run.compare("sum of exp", slice(stats, 1, kStatSumExp, 1), {.reduction = width()});
    run.compare("target", slice(stats, 1, kStatTarget, 1));
    run.compare("sum", slice(stats, 1, kStatSum, 1), {.reduction = width(), .magnitude = spread});
    ops::softmax_stats(run.ex(),
                       {.logits = run.input("logits", {rows, width()}, Element::Value, kLogits),
                        .targets = targets(run),
                        .column_begin = column_begin,
                        .stats = stats});
  }
};

// Statistics of all classes: the local columns and invented ones for the rest.
ConstTensor combined_stats(Trial& run, const LossCase& c) {
  Trial truth = run.truth();
  const Tensor stats = truth.blank({c.rows, kSoftmaxStats});
  ops::softmax_stats(truth.ex(),
                     {.logits = truth.input("logits", {c.rows, c.width()}, Element::Value, kLogits),
                      .targets = c.targets(truth),
                      .column_begin = c.column_begin,
                      .stats = stats});
  std::vector<double> values = truth.read(stats);
  if (c.width() < c.classes) {
    for (size_t row = 0; row < static_cast<size_t>(c.rows); ++row) {
      values[row * kSoftmaxStats + kStatSumExp] *= 2;
      values[row * kSoftmaxStats + kStatSum] += 5;
    }
  }
  return run.given({c.rows, kSoftmaxStats}, values, Element::Sum);
}

enum class Gradient : uint8_t { Apart, OverLogits, None };

// Where the statistics come from. Found: from the op itself.
enum class From : uint8_t { Given, Found };

struct Loss : LossCase {
  Gradient gradient = Gradient::Apart;
  bool scaled = false;
  From stats = From::Given;

  void operator()(Trial& run) const {
    const Shape shape{rows, width()};
    ops::CrossEntropy args;
    if (stats == From::Given) args.stats = combined_stats(run, *this);
    args.targets = targets(run);
    args.weight = run.input("weight", {rows}, Element::F32);
    args.column_begin = column_begin;
    args.classes = classes;
    args.smoothing = smoothing;
    args.z_loss = z_loss;
    const std::vector<double> grad_scale{2};
    if (scaled) args.grad_scale = run.given({1}, grad_scale, Element::F64);
    args.loss = run.output("loss", {rows}, Element::Sum, {.ops = 2});
    if (gradient == Gradient::OverLogits) {
      args.dlogits = run.updated("logits", shape, Element::Value, kLogits);
      args.logits = args.dlogits;
    } else {
      args.logits = run.input("logits", shape, Element::Value, kLogits);
      if (gradient == Gradient::Apart) args.dlogits = run.blank(shape);
    }
    // exp of a difference of size 20 magnifies its rounding by 20.
    if (args.dlogits.present()) run.compare("dlogits", args.dlogits, {.ops = 4});
    ops::cross_entropy(run.ex(), args);
  }
};

std::vector<LossCase> cross_entropy_cases() {
  std::vector<LossCase> all;
  for (const int64_t classes : {1, 2, 7, 8, 9, 16, 31, 33, 64, 65, 1000}) {
    all.push_back({.rows = 11, .classes = classes});
  }
  all.push_back({.rows = 0, .classes = 5});
  all.push_back({.rows = 1, .classes = 5});
  all.push_back({.rows = kSharedRows, .classes = kSharedWidth, .smoothing = 0.1});
  all.push_back({.rows = 13, .classes = 50, .z_loss = 1e-2});
  all.push_back({.rows = 13, .classes = 51, .smoothing = 0.2, .z_loss = 1e-2});
  for (const int64_t begin : {0, 17, 40}) {
    all.push_back({.rows = 29,
                   .classes = 57,
                   .column_begin = begin,
                   .columns = 17,
                   .smoothing = 0.1,
                   .z_loss = 1e-3});
  }
  return all;
}

// Fails when a negative target reads before the row, or a target of another shard is not 0.
TEST(CrossEntropy, CpuStatsAgree) {
  for (const LossCase& c : cross_entropy_cases()) expect_cpu_agrees(c.name(), Stats{c});
}

// Fails when the loss is weighted, the gradient is not, a negative target has a gradient, or the
// column of the target is not shifted by column_begin.
TEST(CrossEntropy, CpuLossAgrees) {
  for (const LossCase& c : cross_entropy_cases()) {
    expect_cpu_agrees(c.name(), Loss{c});
    expect_cpu_agrees(c.name() + " over logits", Loss{c, Gradient::OverLogits});
  }
  expect_cpu_agrees("no gradient", Loss{cross_entropy_cases().back(), Gradient::None});
  expect_cpu_agrees("scaled", Loss{cross_entropy_cases().back(), Gradient::Apart, true});
  const LossCase many{.rows = kSharedRows * kSharedWidth, .classes = 2};
  expect_cpu_agrees("no gradient, many rows", Loss{many, Gradient::None});
}

std::vector<LossCase> whole_rows(std::vector<LossCase> all) {
  std::erase_if(all, [](const LossCase& c) { return c.width() < c.classes; });
  return all;
}

// Fails when the op takes statistics that are not there for zeros, or those of another row.
TEST(CrossEntropy, CpuLossOfWholeRowsAgrees) {
  for (const LossCase& c : whole_rows(cross_entropy_cases())) {
    expect_cpu_agrees(c.name(), Loss{c, Gradient::Apart, false, From::Found});
    expect_cpu_agrees(c.name() + " over logits", Loss{c, Gradient::OverLogits, true, From::Found});
    expect_cpu_agrees(c.name() + " no gradient", Loss{c, Gradient::None, false, From::Found});
  }
}

// Vocabularies of models; rows that begin at odd addresses.
std::vector<LossCase> cross_entropy_large_cases() {
  return {{.rows = 7, .classes = 50257},
          {.rows = 3, .classes = 50304, .smoothing = 0.1, .z_loss = 1e-3},
          {.rows = 2, .classes = 128256},
          {.rows = 5, .classes = 4096},
          {.rows = 5, .classes = 4097},
          {.rows = 9, .classes = 20000, .column_begin = 7001, .columns = 6001, .smoothing = 0.1}};
}

TEST(CrossEntropy, CudaStatsAgree) {
  for (const LossCase& c : cross_entropy_cases()) expect_cuda_agrees(c.name(), Stats{c});
  for (const LossCase& c : cross_entropy_large_cases()) expect_cuda_agrees(c.name(), Stats{c});
}

TEST(CrossEntropy, CudaLossAgrees) {
  for (const auto& list : {cross_entropy_cases(), cross_entropy_large_cases()}) {
    for (const LossCase& c : list) {
      expect_cuda_agrees(c.name(), Loss{c});
      expect_cuda_agrees(c.name() + " over logits", Loss{c, Gradient::OverLogits, true});
    }
  }
  expect_cuda_agrees("no gradient", Loss{cross_entropy_cases().back(), Gradient::None});
  const LossCase many{.rows = kSharedRows * kSharedWidth, .classes = 2};
  expect_cuda_agrees("no gradient, many rows", Loss{many, Gradient::None}, Storage::Alike);
}

// More rows than a GPU works on at a time, so that blocks go on to further rows: of a warp or a
// few, of half a multiprocessor's threads, and of vocabularies whose rows are all aligned
// differently.
std::vector<LossCase> many_row_cases() {
  return {{.rows = 2700, .classes = 33, .smoothing = 0.1},
          {.rows = 700, .classes = 5001, .z_loss = 1e-3},
          {.rows = 300, .classes = 50257, .smoothing = 0.1}};
}

// Fails when a block's next row overwrites what is still needed of this one, or when the part of a
// row beyond shared memory (128256 columns, in f32 also fewer) is left out.
TEST(CrossEntropy, CudaLossOfWholeRowsAgrees) {
  const auto found = [](const LossCase& c, Gradient gradient, bool scaled = false) {
    return Loss{c, gradient, scaled, From::Found};
  };
  for (const auto& list :
       {whole_rows(cross_entropy_cases()), whole_rows(cross_entropy_large_cases())}) {
    for (const LossCase& c : list) {
      expect_cuda_agrees(c.name(), found(c, Gradient::Apart));
      expect_cuda_agrees(c.name() + " over logits", found(c, Gradient::OverLogits, true));
      expect_cuda_agrees(c.name() + " no gradient", found(c, Gradient::None));
    }
  }
}

TEST(CrossEntropy, CudaLossOfManyRowsNarrowAndWide) {
  for (const LossCase& c : many_row_cases()) {
    for (const Gradient gradient : {Gradient::OverLogits, Gradient::None}) {
      expect_cuda_agrees(c.name(), Loss{c, gradient, false, From::Found}, Storage::Alike);
    }
  }
}

// What an ignored row holds is not looked at. Fails when a gradient of 0 is a product with it.
struct IgnoredRow {
  void operator()(Trial& run) const {
    std::vector<double> logits(3 * 43, 0.5);
    logits[43 + 1] = logits[43 + 20] = std::numeric_limits<double>::quiet_NaN();
    logits[43 + 42] = -std::numeric_limits<double>::infinity();
    const std::vector<int64_t> targets{2, -1, 40};
    const Tensor rows = run.updated_given({3, 43}, logits);
    run.compare("dlogits", rows, {.ops = 4});
    ops::cross_entropy(run.ex(), {.logits = rows,
                                  .targets = run.integers({3}, DType::i32, targets),
                                  .weight = run.input("weight", {3}, Element::F32),
                                  .classes = 43,
                                  .loss = run.output("loss", {3}, Element::Sum, {.ops = 2}),
                                  .dlogits = rows});
  }
};

TEST(CrossEntropy, CpuIgnoresWhatAnIgnoredRowHolds) { expect_cpu_agrees("ignored", IgnoredRow{}); }
TEST(CrossEntropy, CudaIgnoresWhatAnIgnoredRowHolds) {
  expect_cuda_agrees("ignored", IgnoredRow{});
}

// Fails when the two ways to the loss part: the definition of one is that of the other.
TEST(CrossEntropy, TheStatisticsAreThoseOfTheOtherOp) {
  for (const LossCase& c : whole_rows(cross_entropy_cases())) {
    SCOPED_TRACE(c.name());
    const auto results = [&](From stats) {
      Trial run(gradient_run());
      Loss{c, Gradient::Apart, true, stats}(run);
      return run.results();
    };
    const auto given = results(From::Given), found = results(From::Found);
    ASSERT_EQ(given.size(), found.size());
    for (size_t i = 0; i < given.size(); ++i) EXPECT_EQ(given[i].values, found[i].values);
  }
}

// Far from 0 exp overflows unless the maximum is subtracted. Fails without the subtraction.
struct LargeLogits {
  void operator()(Trial& run) const {
    const Tensor stats = run.output("stats", {3, kSoftmaxStats}, Element::Sum, {.reduction = 40});
    const std::vector<int64_t> targets{0, 5, 39};
    const Draw far{.scale = 4, .offset = 900};
    ops::softmax_stats(run.ex(), {.logits = run.input("logits", {3, 40}, Element::Value, far),
                                  .targets = run.integers({3}, DType::i32, targets),
                                  .stats = stats});
  }
};

// The same in the op that finds the statistics itself. Its loss and its exponents are differences
// of numbers of that size.
struct LossOfLargeLogits {
  void operator()(Trial& run) const {
    const std::vector<int64_t> targets{0, 5, 39};
    const Draw far{.scale = 4, .offset = 900};
    const Tensor rows = run.updated("logits", {3, 40}, Element::Value, far);
    run.compare("dlogits", rows, {.ops = 4, .magnitude = 900});
    ops::cross_entropy(run.ex(),
                       {.logits = rows,
                        .targets = run.integers({3}, DType::i32, targets),
                        .weight = run.input("weight", {3}, Element::F32),
                        .classes = 40,
                        .loss = run.output("loss", {3}, Element::Sum, {.ops = 2, .magnitude = 900}),
                        .dlogits = rows});
  }
};

// Fails when a part is left out, or is not brought to the common maximum. The maxima lie far apart,
// and one part has no exponentials at all.
struct Merge {
  int64_t ranks, rows;

  void operator()(Trial& run) const {
    std::vector<double> values;
    for (int64_t i = 0; i < ranks * rows; ++i) {
      const bool is_empty = ranks > 1 && i == rows / 2;
      values.push_back(is_empty ? -INFINITY : static_cast<double>(i * 37 % 61) - 30);
      values.push_back(is_empty ? 0 : 1 + static_cast<double>(i * 11 % 17));
      values.push_back(i % ranks == 0 ? 0.5 * static_cast<double>(i % 9) : 0);
      values.push_back(static_cast<double>(i * 7 % 23) - 11);
    }
    const Tensor stats = run.output("stats", {rows, kSoftmaxStats}, Element::Sum,
                                    {.reduction = ranks, .ops = 4, .magnitude = 30});
    ops::merge_softmax_stats(
        run.ex(),
        {.parts = run.given({ranks * rows, kSoftmaxStats}, values, Element::Sum), .stats = stats});
  }
};

TEST(CrossEntropy, CpuMergesStatistics) {
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const int64_t rows : {1, 7, 600})
      expect_cpu_agrees(label("{} ranks, {} rows", ranks, rows), Merge{ranks, rows});
  }
}
TEST(CrossEntropy, CudaMergesStatistics) {
  for (const int64_t ranks : {1, 2, 3, 8}) {
    for (const int64_t rows : {1, 7, 600})
      expect_cuda_agrees(label("{} ranks, {} rows", ranks, rows), Merge{ranks, rows});
  }
}

TEST(CrossEntropy, CpuAgreesOnLargeLogits) {
  expect_cpu_agrees("large", LargeLogits{});
  expect_cpu_agrees("loss of large", LossOfLargeLogits{});
}
TEST(CrossEntropy, CudaAgreesOnLargeLogits) {
  expect_cuda_agrees("large", LargeLogits{});
  expect_cuda_agrees("loss of large", LossOfLargeLogits{});
}

// sum over rows of weight * loss * grad_scale, whose gradient dlogits is.
// Fails when a term of the gradient (smoothing, z_loss, weight) does not belong to the loss.
TEST(CrossEntropy, GradientsMatchDifferences) {
  for (const double smoothing : {0.0, 0.1}) {
    for (const double z_loss : {0.0, 0.05}) {
      const LossCase c{.rows = 9, .classes = 6, .smoothing = smoothing, .z_loss = z_loss};
      SCOPED_TRACE(c.name());
      Trial run(gradient_run());
      const Tensor logits = run.updated("logits", {9, 6});
      const ConstTensor targets = c.targets(run), weight = run.input("weight", {9}, Element::F32);
      const std::vector<double> weights = run.read(weight);
      const Tensor stats = run.blank({9, kSoftmaxStats}), loss = run.blank({9});
      const ConstTensor half = run.given({1}, std::vector<double>{0.5}, Element::F64);
      const auto evaluate = [&](const Tensor& dlogits) {
        ops::softmax_stats(run.ex(), {.logits = logits, .targets = targets, .stats = stats});
        ops::cross_entropy(run.ex(), {.logits = logits,
                                      .stats = stats,
                                      .targets = targets,
                                      .weight = weight,
                                      .classes = 6,
                                      .smoothing = smoothing,
                                      .z_loss = z_loss,
                                      .grad_scale = half,
                                      .loss = loss,
                                      .dlogits = dlogits});
        const std::vector<double> losses = run.read(loss);
        double sum = 0;
        for (size_t row = 0; row < losses.size(); ++row) sum += 0.5 * weights[row] * losses[row];
        return sum;
      };
      const Tensor dlogits = run.blank({9, 6});
      evaluate(dlogits);
      expect_gradient("logits", logits, dlogits, [&] { return evaluate(Tensor{}); });
    }
  }
}

// A uniform row costs log(classes). Fails when the loss is scaled, weighted or averaged.
TEST(CrossEntropy, UniformLogitsCostTheLogarithmOfTheClasses) {
  Trial run(TrialSpec{});
  const std::vector<double> same(16, 1.5);
  const std::vector<int64_t> target{3, -1};
  const ConstTensor logits = run.given({2, 8}, same);
  const ConstTensor targets = run.integers({2}, DType::i32, target);
  const Tensor stats = run.blank({2, kSoftmaxStats}), loss = run.blank({2});
  ops::softmax_stats(run.ex(), {.logits = logits, .targets = targets, .stats = stats});
  ops::cross_entropy(run.ex(), {.logits = logits,
                                .stats = stats,
                                .targets = targets,
                                .weight = run.input("weight", {2}, Element::F32),
                                .classes = 8,
                                .loss = loss});
  EXPECT_NEAR(run.read(loss)[0], std::log(8.0), 1e-14);
  EXPECT_EQ(run.read(loss)[1], 0);
}

// Statistics of shards, combined: what ranks do between the two ops.
std::vector<double> combine(const std::vector<std::vector<double>>& shards) {
  std::vector<double> all = shards[0];
  for (size_t s = 1; s < shards.size(); ++s) {
    for (size_t at = 0; at < all.size(); at += kSoftmaxStats) {
      const double mine = all[at + kStatMax], other = shards[s][at + kStatMax];
      const double max = std::max(mine, other);
      all[at + kStatSumExp] = all[at + kStatSumExp] * std::exp(mine - max) +
                              shards[s][at + kStatSumExp] * std::exp(other - max);
      all[at + kStatMax] = max;
      all[at + kStatTarget] += shards[s][at + kStatTarget];
      all[at + kStatSum] += shards[s][at + kStatSum];
    }
  }
  return all;
}

// Fails when a shard's target or sum counts columns it does not hold, or smoothing is spread over
// the local columns instead of all classes.
TEST(CrossEntropy, ShardsCombineToTheWhole) {
  const LossCase c{.rows = 15, .classes = 29, .smoothing = 0.1, .z_loss = 1e-2};
  Trial run(gradient_run());
  const ConstTensor logits = run.input("logits", {15, 29}, Element::Value, kLogits);
  const ConstTensor targets = c.targets(run), weight = run.input("weight", {15}, Element::F32);
  const auto stats_of = [&](const ConstTensor& part, int64_t begin) {
    const Tensor stats = run.blank({15, kSoftmaxStats});
    ops::softmax_stats(run.ex(),
                       {.logits = part, .targets = targets, .column_begin = begin, .stats = stats});
    return run.read(stats);
  };
  const auto gradient_of = [&](const ConstTensor& part, int64_t begin, const ConstTensor& stats,
                               const Tensor& dlogits) {
    const Tensor loss = run.blank({15});
    ops::cross_entropy(run.ex(), {.logits = part,
                                  .stats = stats,
                                  .targets = targets,
                                  .weight = weight,
                                  .column_begin = begin,
                                  .classes = 29,
                                  .smoothing = c.smoothing,
                                  .z_loss = c.z_loss,
                                  .loss = loss,
                                  .dlogits = dlogits});
    return run.read(loss);
  };
  const Tensor whole = run.blank({15, 29}), pieces = run.blank({15, 29});
  const std::vector<double> all = stats_of(logits, 0);
  const auto loss = gradient_of(logits, 0, run.given({15, kSoftmaxStats}, all), whole);
  const std::vector<std::pair<int64_t, int64_t>> cuts{{0, 10}, {10, 3}, {13, 16}};
  std::vector<std::vector<double>> shards;
  for (const auto& [begin, count] : cuts) {
    shards.push_back(stats_of(slice(logits, 1, begin, count), begin));
  }
  const ConstTensor combined = run.given({15, kSoftmaxStats}, combine(shards));
  for (const auto& [begin, count] : cuts) {
    const auto part = gradient_of(slice(logits, 1, begin, count), begin, combined,
                                  slice(pieces, 1, begin, count));
    for (size_t row = 0; row < loss.size(); ++row) EXPECT_NEAR(part[row], loss[row], 1e-13);
  }
  const std::vector<double> a = run.read(whole), b = run.read(pieces);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14);
}

struct Hits {
  int64_t rows, columns, k;
  void operator()(Trial& run) const {
    // Few values, so that some are equal.
    std::vector<double> logits;
    for (const int64_t draw : random_integers(3, rows * columns, -4, 5))
      logits.push_back(static_cast<double>(draw));
    const Tensor hits = run.blank({rows}, Element::Sum);
    run.compare("hits", hits);
    ops::top_k_hits(run.ex(), {.logits = run.given({rows, columns}, logits, Element::Value),
                               .targets = run.integers({rows}, DType::i32,
                                                       random_integers(5, rows, 0, columns)),
                               .k = k,
                               .value = 100,
                               .hits = hits});
  }
};

std::vector<Hits> hits_cases() {
  return {{0, 3, 1}, {1, 1, 1}, {13, 9, 1}, {13, 9, 4}, {50, 70, 5}, {9, 1000, 100}, {9, 4, 40}};
}

// Fails when equal logits count as in another order, or the last columns do not count.
TEST(TopKHits, CpuAgrees) {
  for (const Hits& c : hits_cases())
    expect_cpu_agrees(label("rows={} columns={} k={}", c.rows, c.columns, c.k), c);
}

// Fails when the target itself, or an equal logit behind it, is before it.
TEST(TopKHits, CountsWhatIsBefore) {
  const std::vector<double> logits{5, 7, 7, 1};
  std::vector<double> ranks;
  for (const int64_t target : {0, 1, 2, 3}) {
    const std::vector<int64_t> targets{target};
    int64_t k = 1;
    for (; k < 9; ++k) {
      Trial run{TrialSpec{}};
      const Tensor hits = run.blank({1}, Element::Sum);
      ops::top_k_hits(run.ex(), {.logits = run.given({1, 4}, logits, Element::Value),
                                 .targets = run.integers({1}, DType::i32, targets),
                                 .k = k,
                                 .hits = hits});
      if (run.read(hits)[0] == 1) break;
    }
    ranks.push_back(static_cast<double>(k));
  }
  EXPECT_EQ(ranks, (std::vector<double>{3, 1, 2, 4}));
}

}  // namespace
}  // namespace bev::test
