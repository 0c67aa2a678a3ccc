// Every test names the fault that makes it fail.
#include "ops/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "ops/harness.h"

namespace bev::test {
namespace {

constexpr double kGradFactor = 0.5;

struct Step {
  double rate, decay;
  int64_t number;
  double applied = 1;
};

ConstTensor decision(Trial& run, const Step& step) {
  std::vector<double> values(kUpdateDecisions, 0.0);
  values[kFactor] = kGradFactor;
  values[kApplied] = step.applied;
  values[kRate] = step.rate;
  values[kWeightDecay] = step.decay;
  values[kStepNumber] = static_cast<double>(step.number);
  return run.given({kUpdateDecisions}, values, Element::F64);
}

// Second moments are positive.
Tensor second_moment(Trial& run, int64_t n) {
  std::vector<double> values = run.read(run.input("v", {n}, Element::Sum));
  for (double& value : values) value *= value;
  return run.updated_given({n}, values, Element::Sum);
}

struct Adam {
  int64_t n;
  bool master = false;
  int64_t step = 3;
  double applied = 1;

  std::string name() const {
    return label("n={} master={} step={} applied={}", n, master, step, applied);
  }
  void operator()(Trial& run) const {
    ops::AdamW args;
    args.param = run.updated("param", {n});
    if (master) args.master = run.updated("master", {n}, Element::Sum);
    args.m = run.updated("m", {n}, Element::Sum);
    args.v = second_moment(run, n);
    args.grad = run.input("grad", {n}, Element::Sum);
    args.decision = decision(run, {0.1, 0.1, step, applied});
    args.beta1 = 0.9;
    args.beta2 = 0.95;
    args.eps = 1e-3;
    run.compare("param", args.param, {.ops = 2});
    if (master) run.compare("master", args.master, {.ops = 2});
    run.compare("m", args.m);
    run.compare("v", args.v);
    ops::adamw(run.ex(), args);
  }
};

struct Momentum {
  int64_t n;
  bool master = false;
  int64_t step = 3;
  double applied = 1;

  std::string name() const {
    return label("n={} master={} step={} applied={}", n, master, step, applied);
  }
  void operator()(Trial& run) const {
    ops::Sgd args;
    args.param = run.updated("param", {n});
    if (master) args.master = run.updated("master", {n}, Element::Sum);
    args.buffer = run.updated("buffer", {n}, Element::Sum);
    args.grad = run.input("grad", {n}, Element::Sum);
    args.decision = decision(run, {0.1, 0.05, step, applied});
    args.momentum = 0.8;
    run.compare("param", args.param, {.ops = 2});
    if (master) run.compare("master", args.master, {.ops = 2});
    run.compare("buffer", args.buffer);
    ops::sgd(run.ex(), args);
  }
};

const std::vector<int64_t> kUpdateLengths{0,  1,  7,  8,  9,  15,
                                          17, 31, 33, 64, 65, kSharedRows* kSharedWidth};

// Fails when bias correction is formed in f32 (beta2^step near 1), the update is computed on the
// rounded param instead of the master, or an update that is not applied touches anything.
TEST(Update, CpuAdamWAgrees) {
  for (const int64_t n : kUpdateLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3, 100000}) {
        const Adam c{n, master, step};
        expect_cpu_agrees(c.name(), c);
      }
      const Adam skipped{n, master, 3, 0};
      expect_cpu_agrees(skipped.name(), skipped);
    }
  }
}

// Fails when the first step reads the buffer, or decay is applied after momentum.
TEST(Update, CpuSgdAgrees) {
  for (const int64_t n : kUpdateLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3}) {
        const Momentum c{n, master, step};
        expect_cpu_agrees(c.name(), c);
      }
      const Momentum skipped{n, master, 3, 0};
      expect_cpu_agrees(skipped.name(), skipped);
    }
  }
}

// Five steps of one weight with the moments as explicit sums over the past gradients (Kingma and Ba
// 2015; Loshchilov and Hutter 2019), which shares no line with the op.
// Fails when the correction uses the wrong step, or decay is scaled by the moments.
TEST(Update, AdamWFollowsItsDefinition) {
  for (const bool master : {false, true}) {
    Trial run(TrialSpec{});
    const double lr = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-8, decay = 0.1;
    const std::vector<double> start{0.7}, zero{0};
    const std::vector<double> grads{0.3, -0.2, 0.5, 0.1, -0.4};
    const Tensor param = run.updated_given({1}, start), m = run.updated_given({1}, zero);
    const Tensor v = run.updated_given({1}, zero), shadow = run.updated_given({1}, start);
    double expected = start[0];
    for (int64_t step = 1; step <= 5; ++step) {
      const std::vector<double> grad{grads[static_cast<size_t>(step - 1)]};
      ops::adamw(run.ex(), {.param = param,
                            .master = master ? shadow : Tensor{},
                            .m = m,
                            .v = v,
                            .grad = run.given({1}, grad),
                            .decision = decision(run, {lr, decay, step}),
                            .beta1 = b1,
                            .beta2 = b2,
                            .eps = eps});
      double mean = 0, square = 0, mean_weights = 0, square_weights = 0;
      for (int64_t past = 1; past <= step; ++past) {
        const double g = kGradFactor * grads[static_cast<size_t>(past - 1)];
        const auto age = static_cast<double>(step - past);
        mean += std::pow(b1, age) * g;
        mean_weights += std::pow(b1, age);
        square += std::pow(b2, age) * g * g;
        square_weights += std::pow(b2, age);
      }
      const double direction = mean / mean_weights / (std::sqrt(square / square_weights) + eps);
      expected = expected * (1 - lr * decay) - lr * direction;
      EXPECT_NEAR(run.read(param)[0], expected, 1e-14) << "step " << step;
      if (master) {
        EXPECT_EQ(run.read(param), run.read(shadow));
      }
    }
  }
}

// The velocity of step t is the sum of momentum^age * d. Fails when momentum damps the gradient.
TEST(Update, SgdFollowsItsDefinition) {
  for (const bool master : {false, true}) {
    Trial run(TrialSpec{});
    const double lr = 0.1, momentum = 0.9, decay = 0.01;
    const std::vector<double> start{0.7}, stale{123};
    const std::vector<double> grads{0.3, -0.2, 0.5, 0.1};
    const Tensor param = run.updated_given({1}, start), shadow = run.updated_given({1}, start);
    const Tensor buffer = run.updated_given({1}, stale);
    double expected = start[0];
    std::vector<double> directions;
    for (int64_t step = 1; step <= 4; ++step) {
      const std::vector<double> grad{grads[static_cast<size_t>(step - 1)]};
      ops::sgd(run.ex(), {.param = param,
                          .master = master ? shadow : Tensor{},
                          .buffer = buffer,
                          .grad = run.given({1}, grad),
                          .decision = decision(run, {lr, decay, step}),
                          .momentum = momentum});
      directions.push_back(kGradFactor * grad[0] + decay * expected);
      double velocity = 0;
      for (size_t past = 0; past < directions.size(); ++past) {
        velocity += std::pow(momentum, static_cast<double>(directions.size() - 1 - past)) *
                    directions[past];
      }
      expected -= lr * velocity;
      EXPECT_NEAR(run.read(param)[0], expected, 1e-14) << "step " << step;
      if (master) {
        EXPECT_EQ(run.read(param), run.read(shadow));
      }
    }
  }
}

// Fails if a weight, the loss scale or a count is left out, or an empty loss divides by zero.
struct Factors {
  int64_t losses;
  bool scaled;

  std::string name() const { return label("losses={} scaled={}", losses, scaled); }
  void operator()(Trial& run) const {
    const std::vector<double> counts{3, 0, 1e6, 7, 1, 2, 5, 11}, scale{4096};
    ops::LossFactors args;
    args.counts = run.given({losses}, std::vector<double>(counts.begin(), counts.begin() + losses),
                            Element::F64);
    if (scaled) args.loss_scale = run.given({1}, scale, Element::F64);
    for (size_t i = 0; i < args.weights.size(); ++i) args.weights[i] = 0.5 + static_cast<double>(i);
    args.out = run.blank({losses}, Element::F64);
    ops::loss_factors(run.ex(), args);
    const std::vector<double> out = run.read(args.out);
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_DOUBLE_EQ(out[i], args.weights[i] * (scaled ? 4096 : 1) / std::max(counts[i], 1.0));
  }
};

void expect_factors(DeviceKind kind) {
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
  for (const int64_t losses : {1, 2, 8})
    for (const bool scaled : {false, true}) {
      Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
      Factors{losses, scaled}(run);
    }
}

TEST(LossFactors, Reference) { expect_factors(DeviceKind::Reference); }
TEST(LossFactors, Cpu) { expect_factors(DeviceKind::Cpu); }
TEST(LossFactors, Cuda) {
  if (no_gpu()) return;
  expect_factors(DeviceKind::Cuda);
}

struct Outcome {
  std::vector<double> state, decision;
};

// One decision from a state that has seen three applied steps of 10 samples.
Outcome decide(DeviceKind kind, double norm_squared, const UpdateRule& rule, double scale,
               double loss = 1) {
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
  Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
  std::vector<double> start(kUpdateStates);
  LossScaling scaling = rule.scaling;
  scaling.initial = scale;
  reset_update_state(scaling, start.data());
  start[kAppliedSteps] = 3;
  start[kScheduledSamples] = 30;
  const std::vector<double> norm{norm_squared}, losses{loss, 1};
  const Tensor state = run.updated_given({kUpdateStates}, start, Element::F64);
  const Tensor out = run.blank({kUpdateDecisions}, Element::F64);
  ops::decide_update(run.ex(), {.norm_squared = run.given({1}, norm, Element::F64),
                                .loss = run.given({2}, losses, Element::F64),
                                .rule = rule,
                                .state = state,
                                .decision = out});
  return {run.read(state), run.read(out)};
}

constexpr double kUpdateInfinity = std::numeric_limits<double>::infinity();

// Fails when a small norm is scaled up, the norm is compared before it is unscaled, max_norm 0
// clips everything, or a norm that is not finite is applied.
void expect_clips(DeviceKind kind) {
  const auto factor = [&](double norm_squared, double max_norm, double scale) {
    return decide(kind, norm_squared, {.max_norm = max_norm}, scale).decision[kFactor];
  };
  EXPECT_NEAR(factor(16, 1, 2), 0.5 * 1.0 / (2.0 + 1e-6), 1e-15);  // norm 4 / 2 above 1
  EXPECT_EQ(decide(kind, 16, {.max_norm = 1}, 2).decision[kApplied], 1);
  EXPECT_EQ(decide(kind, 16, {.max_norm = 1}, 2).decision[kNorm], 2);
  EXPECT_EQ(factor(16, 3, 2), 0.5);  // norm 2 below 3
  EXPECT_EQ(factor(16, 0, 2), 0.5);  // no clipping
  EXPECT_EQ(factor(0, 1, 0.5), 2);
  for (const double norm : {kUpdateInfinity, std::nan("")}) {
    for (const double max_norm : {0.0, 1.0}) {
      const Outcome o = decide(kind, norm, {.max_norm = max_norm}, 1);
      EXPECT_EQ(o.decision[kApplied], 0);
      EXPECT_EQ(o.decision[kFactor], 0);
    }
  }
}

// Fails when a skipped step moves the learning rate, or an applied one does not.
void expect_rate_follows_applied_steps(DeviceKind kind) {
  UpdateRule rule{.samples = 10};
  rule.schedule = {
      .max_lr = 1, .min_lr = 0, .warmup = 100, .decay = 1000, .start_wd = 0.1, .end_wd = 0.1};
  const Outcome applied = decide(kind, 4, rule, 1),
                skipped = decide(kind, kUpdateInfinity, rule, 1);
  EXPECT_DOUBLE_EQ(applied.decision[kRate], 0.3);
  EXPECT_DOUBLE_EQ(applied.decision[kNextRate], 0.4);
  EXPECT_DOUBLE_EQ(applied.decision[kWeightDecay], 0.1);
  EXPECT_EQ(applied.decision[kStepNumber], 4);
  EXPECT_EQ(applied.state[kAppliedSteps], 4);
  EXPECT_EQ(applied.state[kScheduledSamples], 40);
  EXPECT_DOUBLE_EQ(skipped.decision[kRate], 0.3);
  EXPECT_DOUBLE_EQ(skipped.decision[kNextRate], 0.3);
  EXPECT_EQ(skipped.state[kAppliedSteps], 3);
  EXPECT_EQ(skipped.state[kScheduledSamples], 30);
}

// Fails when an overflow of an adapting scale ends the run, or a loss that is not finite does not.
void expect_halts(DeviceKind kind) {
  UpdateRule rule{.halts = true};
  EXPECT_EQ(decide(kind, 4, rule, 1).state[kHalted], 0);
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 1).state[kHalted], 1);
  EXPECT_EQ(decide(kind, 4, rule, 1, std::nan("")).state[kHalted], 1);
  EXPECT_EQ(decide(kind, 4, rule, 1, std::nan("")).decision[kApplied], 0);
  rule.scaling.adapts = true;
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 8).state[kHalted], 0);
  EXPECT_EQ(decide(kind, 4, rule, 8, kUpdateInfinity).state[kHalted], 1);
  rule.halts = false;
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 8, kUpdateInfinity).state[kHalted], 0);
}

// Fails when a loss lacks its weight or its number of values, or only the first one is checked.
void expect_judges_the_weighted_sum(DeviceKind kind) {
  UpdateRule rule{.losses = 2};
  rule.loss_weights = {1, 0.5};
  const auto mean = [&](const std::vector<double>& sums) {
    const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
    Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
    std::vector<double> start(kUpdateStates);
    reset_update_state(rule.scaling, start.data());
    const std::vector<double> norm{1};
    const Tensor state = run.updated_given({kUpdateStates}, start, Element::F64);
    ops::decide_update(run.ex(), {.norm_squared = run.given({1}, norm, Element::F64),
                                  .loss = run.given({4}, sums, Element::F64),
                                  .rule = rule,
                                  .state = state,
                                  .decision = run.blank({kUpdateDecisions}, Element::F64)});
    return run.read(state)[kLossMean];
  };
  EXPECT_DOUBLE_EQ(mean({6, 3, 5, 1}), 2 + 0.5 * 5);
  EXPECT_DOUBLE_EQ(mean({6, 3, 0, 0}), 2);  // no value of the second loss
}

// Decisions one after the other, on losses and norms, from a fresh state.
std::vector<Outcome> decide_all(DeviceKind kind, const UpdateRule& rule,
                                const std::vector<std::pair<double, double>>& steps) {
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
  std::vector<double> state(kUpdateStates);
  reset_update_state(rule.scaling, state.data());
  std::vector<Outcome> outcomes;
  for (const auto& [loss, norm] : steps) {
    Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
    const std::vector<double> squared{norm * norm}, losses{loss * 2, 2};
    const Tensor kept = run.updated_given({kUpdateStates}, state, Element::F64);
    const Tensor out = run.blank({kUpdateDecisions}, Element::F64);
    ops::decide_update(run.ex(), {.norm_squared = run.given({1}, squared, Element::F64),
                                  .loss = run.given({2}, losses, Element::F64),
                                  .rule = rule,
                                  .state = kept,
                                  .decision = out});
    outcomes.push_back({run.read(kept), run.read(out)});
    state = outcomes.back().state;
  }
  return outcomes;
}

// Fails when a spike is called before the warm-up, a value that varies as usual is one, a loss that
// falls quickly hides one, or the policy is not followed.
void expect_finds_spikes(DeviceKind kind) {
  std::vector<std::pair<double, double>> steps;
  for (int i = 0; i < 20; ++i) steps.emplace_back(5 - 0.15 * i + (i % 2 == 0 ? 0.05 : -0.05), 1);
  steps.emplace_back(4, 1);
  UpdateRule rule{.window = 8, .warmup = 20};
  rule.loss_spike = {.deviations = 5};
  const auto at = [&](size_t step) { return decide_all(kind, rule, steps)[step]; };
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(at(i).decision[kFindings], 0) << i;
  EXPECT_EQ(at(19).decision[kLossLimit], 0);
  EXPECT_EQ(at(20).decision[kFindings], kLossSpike);
  EXPECT_LT(at(20).decision[kLossLimit], 4);
  EXPECT_EQ(at(20).decision[kApplied], 1);
  // Counted with its limit.
  EXPECT_EQ(at(20).state[kLossBefore], at(20).decision[kLossLimit]);
  rule.loss_spike.rejects = true;
  EXPECT_EQ(at(20).decision[kApplied], 0);
  EXPECT_EQ(at(20).state[kAppliedSteps], 20);
  EXPECT_EQ(at(20).state[kWatchedSteps], 21);
  EXPECT_EQ(at(20).state[kHalted], 0);
  // After a halt the state is the one before, and nothing changes it.
  rule.loss_spike.halts = true;
  std::vector<double> before = at(19).state;
  before[kHalted] = 1;
  EXPECT_EQ(at(20).state, before);
  steps.emplace_back(2, 1);
  EXPECT_EQ(at(21).decision[kApplied], 0);
  EXPECT_EQ(at(21).state, before);
  // The norm has its own.
  rule.loss_spike = {};
  rule.norm_spike = {.deviations = 5, .rejects = true};
  steps[20] = {2, 1.1};
  EXPECT_EQ(at(20).decision[kFindings], kNormSpike);
  steps[20] = {2, 1.04};  // within five hundredths
  EXPECT_EQ(at(20).decision[kFindings], 0);
}

// Fails when the rate of a run that was told to go slower is the scheduled one, or weight decay
// follows.
void expect_scales_the_rate(DeviceKind kind) {
  UpdateRule rule{.samples = 10};
  rule.schedule = {
      .max_lr = 1, .min_lr = 0, .warmup = 100, .decay = 1000, .start_wd = 0.1, .end_wd = 0.1};
  std::vector<double> state(kUpdateStates), decision(kUpdateDecisions);
  reset_update_state({}, state.data());
  state[kScheduledSamples] = 30;
  state[kLrScale] = 0.5;
  const DType dtype = kind == DeviceKind::Reference ? DType::f64 : DType::f32;
  Trial run({.kind = kind, .storage = dtype, .exact_in = dtype});
  const std::vector<double> squared{4}, losses{1, 1};
  const Tensor out = run.blank({kUpdateDecisions}, Element::F64);
  ops::decide_update(run.ex(), {.norm_squared = run.given({1}, squared, Element::F64),
                                .loss = run.given({2}, losses, Element::F64),
                                .rule = rule,
                                .state = run.updated_given({kUpdateStates}, state, Element::F64),
                                .decision = out});
  EXPECT_DOUBLE_EQ(run.read(out)[kRate], 0.15);
  EXPECT_DOUBLE_EQ(run.read(out)[kNextRate], 0.2);
  EXPECT_DOUBLE_EQ(run.read(out)[kWeightDecay], 0.1);
}

// Fails when hysteresis is ignored or refilled by a back-off, or the minimum is passed.
void expect_scale_adapts(DeviceKind kind) {
  UpdateRule rule;
  rule.scaling = {.minimum = 4, .adapts = true, .window = 1, .hysteresis = 1};
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 16).state[kLossScale], 8);
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 16).state[kHysteresisLeft], 0);
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 4).state[kLossScale], 4);
  EXPECT_EQ(decide(kind, 1, rule, 16).state[kLossScale], 32);
  EXPECT_EQ(decide(kind, 1, rule, 16).decision[kUsedScale], 16);
  rule.scaling.hysteresis = 2;
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 16).state[kLossScale], 16);
  EXPECT_EQ(decide(kind, kUpdateInfinity, rule, 16).state[kHysteresisLeft], 1);
}

void expect_decides(DeviceKind kind) {
  expect_clips(kind);
  expect_rate_follows_applied_steps(kind);
  expect_halts(kind);
  expect_judges_the_weighted_sum(kind);
  expect_finds_spikes(kind);
  expect_scales_the_rate(kind);
  expect_scale_adapts(kind);
}

// Fails when the four elements of a thread are read wide from an address that is not a multiple of
// theirs, or the rest behind the last whole four is left out.
TEST(Update, CudaAdamWAgrees) {
  if (no_gpu()) return;
  for (const int64_t n : kUpdateLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3, 100000}) {
        const Adam c{n, master, step};
        expect_cuda_agrees(c.name(), c);
      }
      const Adam skipped{n, master, 3, 0};
      expect_cuda_agrees(skipped.name(), skipped);
    }
  }
}

TEST(Update, CudaSgdAgrees) {
  if (no_gpu()) return;
  for (const int64_t n : kUpdateLengths) {
    for (const bool master : {false, true}) {
      for (const int64_t step : {1, 3}) {
        const Momentum c{n, master, step};
        expect_cuda_agrees(c.name(), c);
      }
      const Momentum skipped{n, master, 3, 0};
      expect_cuda_agrees(skipped.name(), skipped);
    }
  }
}

// One step of many equal elements with bf16 moments. Fails when they are rounded to nearest, when
// two elements draw alike, or when the second moment is rounded with the draws of the first.
TEST(Update, CudaShortMomentsAreRoundedWithoutBias) {
  if (no_gpu()) return;
  constexpr int64_t kCount = 1 << 16;
  Trial run({.kind = DeviceKind::Cuda, .storage = DType::bf16, .exact_in = DType::bf16});
  const auto all = [&](double value) { return std::vector<double>(kCount, value); };
  const Tensor m = run.updated_given({kCount}, all(0.0)), v = run.updated_given({kCount}, all(0.0));
  ops::adamw(run.ex(), {.param = run.updated_given({kCount}, all(1.0)),
                        .master = run.updated_given({kCount}, all(1.0), Element::Sum),
                        .m = m,
                        .v = v,
                        .grad = run.given({kCount}, all(0.7), Element::Sum),
                        .decision = decision(run, {0.1, 0, 1}),
                        .beta1 = 0.9,
                        .beta2 = 0.99,
                        .rounding_key = 5});
  const auto expect_unbiased = [&](const std::vector<double>& values, double exact) {
    double sum = 0;
    std::set<double> distinct;
    for (const double value : values) {
      sum += value;
      distinct.insert(value);
    }
    EXPECT_EQ(distinct.size(), 2u);  // the two neighbours of `exact`
    EXPECT_LT(*distinct.begin(), exact);
    EXPECT_GT(*distinct.rbegin(), exact);
    const double step = *distinct.rbegin() - *distinct.begin();
    EXPECT_NEAR(sum / kCount, exact, 4 * step / std::sqrt(static_cast<double>(kCount)));
  };
  const std::vector<double> first = run.read(m), second = run.read(v);
  const double g = kGradFactor * 0.7;
  expect_unbiased(first, 0.1 * g);
  expect_unbiased(second, 0.01 * g * g);
  // Rounded up together a quarter of the time or so, not always.
  int64_t together = 0, up = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const bool a = first[i] > 0.1 * g, b = second[i] > 0.01 * g * g;
    up += a ? 1 : 0;
    together += a && b ? 1 : 0;
  }
  EXPECT_LT(together, up);
  EXPECT_GT(together, 0);
}

TEST(Update, CudaDecides) {
  if (no_gpu()) return;
  expect_decides(DeviceKind::Cuda);
}

TEST(Update, Decides) { expect_decides(DeviceKind::Reference); }
TEST(Update, CpuDecides) { expect_decides(DeviceKind::Cpu); }

}  // namespace
}  // namespace bev::test
