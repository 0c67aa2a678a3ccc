// Every test names the fault that makes it fail.
#include "ops/lamb_update.h"

#include <gtest/gtest.h>

#include "ops/harness.h"

namespace bev::test {
namespace {

// Results in f64 that follow from operations in f32.
constexpr int kSingleInDouble = 1 << 29;

struct LambStepCase {
  int64_t n;
  bool master = false, noise = false, coupled = false;
  int64_t step = 3;
  double applied = 1;

  std::string name() const {
    return label("n={} master={} noise={} coupled={} step={} applied={}", n, master, noise, coupled,
                 step, applied);
  }
  LambRule rule() const {
    return {.beta1 = 0.9,
            .beta2 = 0.95,
            .eps = 1e-3,
            .max_norm = 0.25,
            .decoupled = !coupled,
            .has_noise = noise};
  }
};

ConstTensor lamb_decision(Trial& run, const LambStepCase& c) {
  std::vector<double> values(kUpdateDecisions, 0.0);
  values[kFactor] = 0.5;
  values[kApplied] = c.applied;
  values[kRate] = 0.1;
  values[kWeightDecay] = 0.1;
  values[kStepNumber] = static_cast<double>(c.step);
  values[kNorm] = 0.75;  // the second clip divides by 1.5
  values[kUsedScale] = 1;
  return run.given({kUpdateDecisions}, values, Element::F64);
}

// Two parameters, the first of two thirds of the run, then a gap that is in no chunk. The last
// chunk of the second is not counted in norms.
std::vector<int64_t> chunk_rows(int64_t n) {
  std::vector<int64_t> rows;
  const int64_t first = 2 * n / 3, gap = n > 8 ? 3 : 0;
  const auto add = [&](int64_t begin, int64_t end, int64_t row) {
    for (; begin < end; begin += ops::kLambChunk) {
      const int64_t count = std::min(ops::kLambChunk, end - begin);
      const bool is_last = row == 1 && begin + count == end;
      rows.insert(rows.end(), {begin, count, row, is_last ? 0 : 1});
    }
  };
  add(0, first, 0);
  add(first + gap, n, 1);
  return rows;
}

// The harness leaves gaps between rows; tables are packed.
ConstTensor packed_table(const ConstTensor& flat, int64_t columns) {
  return reshape(flat, {flat.rows() / columns, columns});
}
Tensor packed_table(const Tensor& flat, int64_t columns) {
  return reshape(flat, {flat.rows() / columns, columns});
}

ConstTensor lamb_chunks(Trial& run, int64_t n) {
  const std::vector<int64_t> rows = chunk_rows(n);
  return packed_table(run.integers({std::ssize(rows)}, DType::i64, rows), ops::kChunkFields);
}

// Second moments are positive.
Tensor positive(Trial& run, const char* name, int64_t n) {
  std::vector<double> values = run.read(run.input(name, {n}, Element::Sum));
  for (double& value : values) value *= value;
  return run.updated_given({n}, values, Element::Sum);
}

struct MomentsCase : LambStepCase {
  void operator()(Trial& run) const {
    ops::LambMoments args;
    args.weights = run.input("weights", {n}, Element::Sum);
    args.m = run.updated("m", {n}, Element::Sum);
    args.v = positive(run, "v", n);
    if (noise) args.q = positive(run, "q", n);
    args.grad = run.input("grad", {n}, Element::Sum);
    args.decision = lamb_decision(run, *this);
    args.chunks = lamb_chunks(run, n);
    args.rule = rule();
    const int64_t norms = noise ? 3 : 2, sums = norms * args.chunks.rows();
    const std::vector<double> before(static_cast<size_t>(sums), 7.0);
    args.squares = packed_table(run.updated_given({sums}, before, Element::F64), norms);
    run.compare("m", args.m, {.ops = 2});
    run.compare("v", args.v, {.ops = 2});
    if (noise) run.compare("q", args.q, {.ops = 3});
    run.compare("squares", args.squares, {.reduction = ops::kLambChunk, .ops = kSingleInDouble});
    ops::lamb_moments(run.ex(), args);
  }
};

struct UpdateCase : LambStepCase {
  void operator()(Trial& run) const {
    ops::LambUpdate args;
    args.param = run.updated("param", {n});
    if (master) args.master = run.updated("master", {n}, Element::Sum);
    args.m = run.updated("m", {n}, Element::Sum);
    args.v = positive(run, "v", n);
    if (noise) {
      args.q = positive(run, "q", n);
      args.grad = run.input("grad", {n}, Element::Sum);
      run.compare("m", args.m, {.ops = 2});
    }
    args.decision = lamb_decision(run, *this);
    args.chunks = lamb_chunks(run, n);
    const std::vector<double> ratios{0.7, 0.3, 1.3, 0.2};
    args.ratios = packed_table(run.given({4}, ratios, Element::F64), 2);
    args.rule = rule();
    run.compare("param", args.param, {.ops = 3});
    if (args.master.present()) run.compare("master", args.master, {.ops = 3});
    ops::lamb_update(run.ex(), args);
  }
};

const std::vector<int64_t> kLambLengths{0,  1,  3,  7,   8,    9,     31,
                                        65, 67, 97, 257, 8193, 24579, kSharedRows* kSharedWidth};

// The combinations for one length.
template <class F>
void each_lamb_case(int64_t n, F&& f) {
  for (const bool noise : {false, true}) {
    for (const bool master : {false, true}) f(LambStepCase{n, master, noise});
    f(LambStepCase{n, true, noise, true});
    f(LambStepCase{n, true, noise, false, 1});
    f(LambStepCase{n, true, noise, false, 3, 0});
  }
  f(LambStepCase{n, false, false, false, 100000});
}

// Fails when a chunk's end is skipped, the gap between parameters is touched, an uncounted chunk
// is summed, weight decay enters the wrong place, or a rejected update changes anything.
TEST(Lamb, CpuMomentsAgree) {
  for (const int64_t n : kLambLengths) {
    each_lamb_case(n, [](const LambStepCase& c) {
      const MomentsCase moments{c};
      expect_cpu_agrees(c.name(), moments);
    });
  }
}

// Fails when the ratio of another parameter scales an update, the first moment takes the gradient
// before the noise is found, or the update is computed on the rounded parameter.
TEST(Lamb, CpuUpdatesAgree) {
  for (const int64_t n : kLambLengths) {
    each_lamb_case(n, [](const LambStepCase& c) {
      const UpdateCase update{c};
      // Short parameters always have master weights.
      expect_cpu_agrees(c.name(), update, c.master ? Storage::All : Storage::F32Only);
    });
  }
}

// Fails when a group of four is read across the end of a chunk, or wide from an odd address.
TEST(Lamb, CudaMomentsAgree) {
  if (no_gpu()) return;
  for (const int64_t n : kLambLengths) {
    each_lamb_case(n, [](const LambStepCase& c) {
      const MomentsCase moments{c};
      expect_cuda_agrees(c.name(), moments);
    });
  }
}

TEST(Lamb, CudaUpdatesAgree) {
  if (no_gpu()) return;
  for (const int64_t n : kLambLengths) {
    each_lamb_case(n, [](const LambStepCase& c) {
      const UpdateCase update{c};
      expect_cuda_agrees(c.name(), update, c.master ? Storage::All : Storage::F32Only);
    });
  }
}

// bf16 gradients, which only cuda has.
TEST(Lamb, CudaReadsShortGradients) {
  if (no_gpu()) return;
  constexpr int64_t kCount = 4099;
  const LambStepCase c{kCount, true, true};
  const auto moments = [&](Element grad) {
    Trial run({.kind = DeviceKind::Cuda, .storage = DType::bf16, .exact_in = DType::bf16});
    const Tensor m = run.updated("m", {kCount}, Element::Sum), v = positive(run, "v", kCount);
    const ConstTensor chunks = lamb_chunks(run, kCount);
    ops::lamb_moments(run.ex(), {.weights = run.input("weights", {kCount}, Element::Sum),
                                 .m = m,
                                 .v = v,
                                 .q = positive(run, "q", kCount),
                                 .grad = run.input("grad", {kCount}, grad),
                                 .decision = lamb_decision(run, c),
                                 .chunks = chunks,
                                 .rule = c.rule(),
                                 .squares = run.blank({chunks.shape[0], 3}, Element::F64)});
    return run.read(v);
  };
  EXPECT_EQ(moments(Element::Value), moments(Element::Sum));
}

struct SegmentsCase {
  int64_t columns;

  void operator()(Trial& run) const {
    // An empty one, one of many rows, one of a single row; row 0 is in none.
    const std::vector<int64_t> segments{1, 1, 1, 1400, 1400, 1401};
    ops::SumSegments args;
    args.x = run.input("x", {1401, columns}, Element::F64);
    args.segments = run.integers({3, 2}, DType::i64, segments);
    args.out = run.blank({3, columns}, Element::F64);
    run.compare("out", args.out, {.reduction = 1400});
    ops::sum_segments(run.ex(), args);
  }
};

void expect_segments(DeviceKind kind) {
  for (const int64_t columns : {1, 2, 3}) {
    Trial truth(TrialSpec{});
    SegmentsCase{columns}(truth);
    Trial run({.kind = kind, .storage = DType::f32});
    SegmentsCase{columns}(run);
    const std::vector<double> expected = truth.results()[0].values, got = run.results()[0].values;
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
    EXPECT_EQ(got[0], 0);
  }
}

// Fails when a segment takes in a row of the next, or an empty one is not 0.
TEST(SumSegments, CpuAgrees) { expect_segments(DeviceKind::Cpu); }
TEST(SumSegments, CudaAgrees) {
  if (no_gpu()) return;
  expect_segments(DeviceKind::Cuda);
}

// One parameter with weight decay, one without, one of zeros, one whose update is zero.
struct Ratios {
  std::vector<double> out, previous;
};

Ratios ratios_of(DeviceKind device, TrustRatio kind, int64_t step, double applied = 1,
                 double previous = 4) {
  const DType dtype = device == DeviceKind::Reference ? DType::f64 : DType::f32;
  Trial run({.kind = device, .storage = dtype, .exact_in = dtype});
  const std::vector<double> squares{9, 4, 400, 16, 0, 4, 9, 0};
  // Two ranks: the first tensor is cut, the others are copies.
  const std::vector<double> whole{25, 16, 800, 32, 0, 8, 18, 0};
  const std::vector<double> params{100, 200, 1, 1, 50, 50, 2, 0, 1e6, 1e6, 1, 1, 10, 10, 1, 1};
  const std::vector<double> kept(4, previous), blank(8, 7.0);
  std::vector<double> decision(kUpdateDecisions, 0.0);
  decision[kApplied] = applied;
  decision[kWeightDecay] = 0.1;
  decision[kStepNumber] = static_cast<double>(step);
  const bool is_whole = kind > TrustRatio::Shard;
  const Tensor out = run.updated_given({4, 2}, blank, Element::F64);
  const Tensor kept_norms = run.updated_given({4}, kept, Element::F64);
  ops::lamb_ratios(run.ex(),
                   {.squares = run.given({4, 2}, squares, Element::F64),
                    .whole = is_whole ? run.given({4, 2}, whole, Element::F64) : ConstTensor{},
                    .params = run.given({4, kLambParams}, params, Element::F64),
                    .decision = run.given({kUpdateDecisions}, decision, Element::F64),
                    .previous = kept_norms,
                    .kind = kind,
                    .tensor_ranks = 2,
                    .out = out});
  Ratios result{{}, run.read(kept_norms)};
  const std::vector<double> both = run.read(out);
  for (size_t i = 0; i < 4; ++i) result.out.push_back(both[2 * i]);
  return result;
}

using Numbers = std::vector<double>;

void expect_near(const Numbers& got, const Numbers& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-14) << i;
}

// Fails when the boost is left out, a rule serves another kind, a ratio to an update of zeros is
// not finite, or the norm of a rejected step is kept.
void expect_ratios(DeviceKind device) {
  const auto of = [&](TrustRatio kind, int64_t step) { return ratios_of(device, kind, step).out; };
  expect_near(of(TrustRatio::Norms, 2), {1.5, 10, 1, 1});
  expect_near(of(TrustRatio::DecayedNorms, 2), {1.5, 2, 1, 1});
  expect_near(of(TrustRatio::BoundedNorms, 2), {1.5, 5, 1, 1});
  expect_near(of(TrustRatio::Clamped, 2), {1.5, 10, 5, 0});
  expect_near(of(TrustRatio::Shard, 1), {1.5, 10, 0, 0});
  expect_near(of(TrustRatio::Whole, 1), {1.25, 10, 0, 0});
  expect_near(of(TrustRatio::Mixed, 1), {1.5, 10, 5, 0});
  expect_near(of(TrustRatio::Mixed, 2), {5 / std::sqrt(2.0) / 2, 10, 0, 0});
  expect_near(of(TrustRatio::Previous, 1), {1.5, 10, 5, 0});
  expect_near(of(TrustRatio::Previous, 2), {1.25, 10, 0, 0.75});
  expect_near(ratios_of(device, TrustRatio::Previous, 2, 1, 0).out, {1.5, 10, 5, 0});
  expect_near(ratios_of(device, TrustRatio::Previous, 2).previous, {4, 4, 2, 0});
  const Ratios rejected = ratios_of(device, TrustRatio::Previous, 2, 0, 3);
  EXPECT_EQ(rejected.out, Numbers(4, 7.0));
  EXPECT_EQ(rejected.previous, Numbers(4, 3.0));
}

TEST(LambRatios, Reference) { expect_ratios(DeviceKind::Reference); }
TEST(LambRatios, Cpu) { expect_ratios(DeviceKind::Cpu); }
TEST(LambRatios, Cuda) {
  if (no_gpu()) return;
  expect_ratios(DeviceKind::Cuda);
}

}  // namespace
}  // namespace bev::test
