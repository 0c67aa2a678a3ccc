// What must not change the result of a training step: how a batch is cut into micro-batches,
// recomputation, the number of threads, running it again.
#include <gtest/gtest.h>

#include "support/small_run.h"
#include "support/tiny_models.h"
#include "support/tolerance.h"

namespace bev::test {
namespace {

class Step : public ::testing::TestWithParam<TinyModel> {
 protected:
  static void expect_same_bits(SmallRun& a, SmallRun& b) {
    const std::vector<double> la = a.train(3), lb = b.train(3);
    EXPECT_EQ(la, lb);
    EXPECT_TRUE(same_bits(a.assembly.params, b.assembly.params, &Param::grad));
    EXPECT_TRUE(same_bits(a.assembly.params, b.assembly.params, &Param::value));
  }
  static Config on_cpu(Config c, Precision precision = Precision::F32) {
    c.device.kind = DeviceKind::Cpu;
    c.device.precision = precision;
    c.device.threads = 2;
    return c;
  }
};

class MicroBatches : public Step {};

// Fault that fails it: Param::accumulate() returning true always (or begin_step not called).
TEST_P(MicroBatches, FourTimesOneEqualsOneTimesFour) {
  Config whole = GetParam().config, cut = GetParam().config;
  whole.train.micro_batch = 4;
  cut.train.micro_batch = 1;
  SmallRun a(whole), b(cut);
  const std::vector<double> la = a.train(3), lb = b.train(3);
  for (size_t i = 0; i < la.size(); ++i) EXPECT_NEAR(la[i], lb[i], 1e-12 * la[i]);
  EXPECT_LE(largest_difference(a.config.model, a.assembly.params, b.assembly.params, &Param::value),
            1e-12);
  EXPECT_LE(largest_difference(a.config.model, a.assembly.params, b.assembly.params, &Param::grad),
            1e-12);
}

// Fault that fails it: the recomputed block keeps its activations in the scratch arena; the dropout
// draw depends on a call counter.
TEST_P(Step, RecomputationChangesNoBit) {
  for (const bool cpu : {false, true}) {
    Config kept = GetParam().config;
    if (cpu) kept = on_cpu(kept);
    Config full = kept, selective = kept, some = kept;
    full.recompute.granularity = Recompute::Full;
    selective.recompute.granularity = Recompute::Selective;
    some.recompute.granularity = Recompute::Full;
    some.recompute.layers = 1;
    for (const Config& other : {full, selective, some}) {
      SmallRun a(kept), b(other);
      expect_same_bits(a, b);
      EXPECT_LT(b.plan.arenas.keep, a.plan.arenas.keep);
    }
  }
}

// Fault that fails it: a block of a group reads what entered the group instead of what the block
// before it wrote.
TEST_P(Step, RecomputationInGroupsChangesNoBit) {
  const auto full = [](RecomputeMethod method, int64_t layers) {
    return RecomputeConfig{.granularity = Recompute::Full, .method = method, .layers = layers};
  };
  for (const bool cpu : {false, true}) {
    Config kept = cpu ? on_cpu(GetParam().config) : GetParam().config;
    kept.model.layers = 3;
    for (const RecomputeConfig& recompute :
         {full(RecomputeMethod::Uniform, 1), full(RecomputeMethod::Uniform, 2),
          full(RecomputeMethod::Uniform, 3), full(RecomputeMethod::Block, 2)}) {
      Config other = kept;
      other.recompute = recompute;
      SmallRun a(kept), b(other);
      expect_same_bits(a, b);
      EXPECT_LT(b.plan.arenas.keep, a.plan.arenas.keep);
    }
  }
}

TEST_P(Step, RecomputationChangesNoBitInBf16) {
  const Config kept = on_cpu(GetParam().config, Precision::Bf16);
  Config full = kept, grouped = kept, selective = kept;
  full.recompute.granularity = Recompute::Full;
  grouped.recompute = {
      .granularity = Recompute::Full, .method = RecomputeMethod::Uniform, .layers = 2};
  selective.recompute.granularity = Recompute::Selective;
  for (const Config& other : {full, grouped, selective}) {
    SmallRun a(kept), b(other);
    expect_same_bits(a, b);
  }
}

// Fault that fails it: per-thread partial sums in a weight gradient.
TEST_P(Step, ThreadsChangeNoBit) {
  Config one = on_cpu(GetParam().config);
  one.device.threads = 1;
  Config three = one;
  three.device.threads = 3;
  SmallRun a(one), b(three);
  expect_same_bits(a, b);
}

// Fault that fails it: anything read before it is written.
TEST_P(Step, TwoRunsAreBitwiseEqual) {
  for (const Config& c : {GetParam().config, on_cpu(GetParam().config)}) {
    SmallRun a(c), b(c);
    expect_same_bits(a, b);
  }
}

// Weights, not only the loss: a gradient that is wrong by 1e-4 hides in the loss.
TEST_P(Step, CpuFollowsReference) {
  SmallRun reference(GetParam().config), cpu(on_cpu(GetParam().config));
  const std::vector<double> lr = reference.train(3), lc = cpu.train(3);
  for (size_t i = 0; i < lr.size(); ++i) EXPECT_NEAR(lr[i], lc[i], 2e-5 * lr[i]);
  EXPECT_LE(largest_difference(cpu.config.model, cpu.assembly.params, reference.assembly.params,
                               &Param::grad),
            1e-4);
}

TEST_P(Step, Bf16FollowsF32Loosely) {
  SmallRun f32(on_cpu(GetParam().config)), bf16(on_cpu(GetParam().config, Precision::Bf16));
  const std::vector<double> a = f32.train(3), b = bf16.train(3);
  // The scores of a bi-encoder are sums of products of whole embeddings, mostly not scaled.
  const double bound = GetParam().config.model.family == ModelFamily::Biencoder ? 0.15 : 0.05;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound * a[i]);
}

INSTANTIATE_TEST_SUITE_P(All, Step, ::testing::ValuesIn(tiny_models()),
                         [](const auto& model) { return model.param.name; });
INSTANTIATE_TEST_SUITE_P(All, MicroBatches,
                         ::testing::ValuesIn(with_independent_samples(tiny_models())),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace bev::test
